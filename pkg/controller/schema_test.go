package controller

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/api/v1alpha1/apitest"
	"github.com/dovetail-dra/dovetail/test/apiserver"
)

// The schema refuses what Validate refuses, with the same fields; the table is that
// of the API's own test.
func TestSchema(t *testing.T) {
	server, err := client.New(apiserver.Start(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("examples", func(t *testing.T) { examplesAreTaken(t, server) })
	t.Run("kind of shape", func(t *testing.T) { shapeIsImmutable(t, server) })
	for _, test := range apitest.PartitionClasses(t) {
		t.Run(test.Name, func(t *testing.T) {
			class := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(test.Class, &class.Object); err != nil {
				t.Fatal(err)
			}
			class.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.PartitionClassKind))
			want := test.Refused
			if test.Schema != nil {
				want = *test.Schema
			}
			apitest.Check(t, server.Create(t.Context(), class, client.DryRunAll, client.FieldValidation("Strict")), want)
		})
	}
}

// The chart's examples are taken as they stand.
func examplesAreTaken(t *testing.T, server client.Client) {
	content, err := os.ReadFile("../../deployments/helm/dovetail/examples/partitionclasses.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(content), "---\n") {
		class := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &class.Object); err != nil {
			t.Fatal(err)
		}
		if err := server.Create(t.Context(), class, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%s: %v", class.GetName(), err)
		}
	}
}

func shapeIsImmutable(t *testing.T, server client.Client) {
	class := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("{metadata: {name: changing}, spec: {shape: {mig: {profile: 1g.10gb}}}}"), &class.Object); err != nil {
		t.Fatal(err)
	}
	class.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.PartitionClassKind))
	if err := server.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if published, _, _ := unstructured.NestedBool(class.Object, "spec", "published"); !published {
		t.Error("published is not true by default")
	}
	for _, test := range []struct {
		patch, want string
	}{
		{`{"spec":{"shape":{"mig":{"profile":"2g.20gb"}}}}`, ""},
		{`{"spec":{"shape":{"mig":{"profile":null,"memory":"10G"}}}}`, ""},
		{`{"spec":{"shape":{"mig":null,"gpu":{}}}}`, "make another class"},
	} {
		err := server.Patch(t.Context(), class.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(test.patch)))
		if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v", test.patch, err)
		}
	}
}
