package e2e

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/utils/ptr"

	descriptions "github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestSlicesOfEveryMachine: the API server takes what the catalog makes of each of
// the described machines, and drops nothing of it.
func TestSlicesOfEveryMachine(t *testing.T) {
	e := start(t, nil)
	for _, name := range descriptions.Names() {
		t.Run(name, func(t *testing.T) {
			slices := catalog.Build(simulatortest.Describe(t, name), catalog.Options{}).Slices()
			for i, s := range slices {
				want := resourceapi.ResourceSliceSpec{
					Driver: harness.Driver, NodeName: ptr.To(name),
					Pool:    resourceapi.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: int64(len(slices))},
					Devices: s.Devices, SharedCounters: s.Counters,
				}
				slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i)}, Spec: want}
				got, err := e.Kube.ResourceV1().ResourceSlices().Create(e.ctx, slice, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				if err != nil {
					t.Errorf("slice %d of %d: %v", i+1, len(slices), err)
					continue
				}
				for _, d := range got.Spec.Devices {
					for j := range d.Taints {
						d.Taints[j].TimeAdded = nil // the API server's own
					}
				}
				if !apiequality.Semantic.DeepEqual(got.Spec, want) {
					t.Errorf("slice %d of %d is not as it was sent: %s", i+1, len(slices), diff.Diff(want, got.Spec))
				}
			}
		})
	}
}
