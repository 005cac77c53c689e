package class_test

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/class"
)

// TestString: what a class takes, as its condition Matched tells people.
func TestString(t *testing.T) {
	for spec, want := range map[string]string{
		`{shape: {mig: {profile: 1g.10gb}}, hardware: {products: [NVIDIA H100*, NVIDIA A100*]}}`: "partitions 1g.10gb of NVIDIA H100* or NVIDIA A100*",
		`{shape: {mig: {memory: 9G}}}`:                                              "partitions with at least 9G of memory",
		`{shape: {mps: {memory: 10Gi, compute: 25}}}`:                               "shares by MPS of 10Gi of memory",
		`{shape: {mps: {memory: 1.5Gi}}}`:                                           "shares by MPS of 1536Mi of memory",
		`{shape: {mps: {}}}`:                                                        "devices of type mps",
		`{shape: {timeSlice: {memory: 20Gi, clients: 2}}}`:                          "time slices of 20Gi of memory",
		`{shape: {timeSlice: {clients: 4}}}`:                                        "time slices for 4 claims a GPU",
		`{shape: {gpu: {}}, hardware: {minMemory: 70Gi, architectures: [Hopper]}}`:  "whole GPUs of architecture Hopper on GPUs with at least 70Gi of memory",
		`{shape: {pair: {closeness: PXB, lossless: true}}}`:                         "pairs of closeness PXB with lossless NICs",
		`{shape: {rdma: {}}, hardware: {nodeSelector: {matchLabels: {pool: hpc}}}}`: "devices of type rdma on nodes with labels pool=hpc",
	} {
		p := &v1alpha1.PartitionClass{}
		p.Name = "a"
		if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
			t.Fatal(err)
		}
		c, err := class.Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		before := p.DeepCopy()
		if got := c.String(); got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
		if !reflect.DeepEqual(p, before) { // the class is a cache's
			t.Errorf("%s: it is another class once it was described", spec)
		}
	}
}
