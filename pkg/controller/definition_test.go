package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

// A class that is written right after the CustomResourceDefinition has a new field is
// known with it at last when it is written again, whether or not anything else changes.
func TestDefinitionChanges(t *testing.T) {
	w := newWorld(t)
	w.stop()
	const field = "extendedResourceName"
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	w.must(w.Get(t.Context(), client.ObjectKey{Name: "partitionclasses.dovetail.dev"}, definition))
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	w.must(err)
	path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", field}
	schema, found, err := unstructured.NestedMap(versions[0].(map[string]any), path...)
	if err != nil || !found {
		t.Fatalf("no %s: %v", field, err)
	}
	unstructured.RemoveNestedField(versions[0].(map[string]any), path...)
	update := func() {
		w.must(unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"))
		w.must(w.Update(t.Context(), definition))
	}
	update()
	// known says whether the API server goes by a definition with the field.
	known := func(want bool) {
		n := 0
		w.must(wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patiencetest.Limit, true, func(ctx context.Context) (bool, error) {
			n++
			pc := &v1alpha1.PartitionClass{}
			pc.Name = fmt.Sprintf("probe-%t-%d", want, n)
			pc.Spec = v1alpha1.PartitionClassSpec{Shape: v1alpha1.Shape{GPU: &v1alpha1.GPUShape{}}, ExtendedResourceName: "example.com/" + pc.Name}
			err := w.Create(ctx, pc)
			return (pc.Spec.ExtendedResourceName != "") == want, err
		}))
	}
	known(false)
	w.start()
	w.untilMeasured("probe-false-1")
	w.must(unstructured.SetNestedMap(versions[0].(map[string]any), schema, path...))
	update()
	known(true)
	w.class("late", `{shape: {gpu: {}}, extendedResourceName: example.com/late}`)
	served := func(dc *resourceapi.DeviceClass) bool {
		return dc != nil && ptr.Deref(dc.Spec.ExtendedResourceName, "") == "example.com/late"
	}
	until(w, "a DeviceClass", "late", &resourceapi.DeviceClassList{}, func(dc *resourceapi.DeviceClass) bool { return dc != nil })
	for n := 0; !served(w.deviceClass("late")); n++ {
		if n == 2000 {
			t.Fatalf("DeviceClass %+v", w.deviceClass("late"))
		}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"dovetail.dev/sent":"%d"}}}`, n)
		pc := &v1alpha1.PartitionClass{}
		pc.Name = "late"
		w.must(w.Patch(t.Context(), pc, client.RawPatch("application/merge-patch+json", []byte(patch))))
	}
}
