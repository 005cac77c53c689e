package parameters

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

func ofKind(kind, fields string, requests ...string) resourceapi.DeviceAllocationConfiguration {
	c := config(resourceapi.AllocationConfigSourceClaim, "dovetail.dev", "", requests...)
	if fields != "" {
		fields = "," + fields
	}
	c.Opaque.Parameters = runtime.RawExtension{Raw: []byte(`{"apiVersion":"dovetail.dev/v1alpha1","kind":"` + kind + `"` + fields + `}`)}
	return c
}

func TestForKind(t *testing.T) {
	const gpu, nic, pair = v1alpha1.GPUConfigKind, v1alpha1.NICConfigKind, v1alpha1.PairConfigKind
	for name, test := range map[string]struct {
		request, kind string
		configs       []resourceapi.DeviceAllocationConfiguration
		want          string
		words         []string
	}{
		"for all, each its own": {"n", nic, []resourceapi.DeviceAllocationConfiguration{ofKind(gpu, `"computeMode":"Default"`), ofKind(nic, `"mtu":9000`)}, `{"mtu":9000}`, nil},
		"named, of another kind": {"n", nic, []resourceapi.DeviceAllocationConfiguration{ofKind(gpu, "", "n")}, "", []string{
			`requests ["n"]`, "kind: GPUConfig", "configured by a NICConfig",
		}},
		"alternatives of two kinds": {"r/pair", pair, []resourceapi.DeviceAllocationConfiguration{ofKind(gpu, "", "r"), ofKind(pair, `"nic":{"mtu":9000}`, "r")}, `{"nic":{"mtu":9000}}`, nil},
		"no kind said":              {"n", "", []resourceapi.DeviceAllocationConfiguration{ofKind(nic, `"mtu":9000`, "n")}, `{"mtu":9000}`, nil},
		"no kind said, nothing":     {"n", "", nil, `null`, nil},
		"no kind said, two": {"n", "", []resourceapi.DeviceAllocationConfiguration{ofKind(nic, "", "n"), ofKind(pair, "", "n")}, "", []string{
			"kind: PairConfig", "configured by a NICConfig",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := Decode(test.configs)
			if err != nil {
				t.Fatal(err)
			}
			merged, err := list.For(test.request, test.kind)
			if (err != nil) != (test.words != nil) || err != nil && failure.ClassOf(err) != failure.Invalid {
				t.Fatalf("error %v", err)
			}
			for _, word := range test.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q is not in %q", word, err)
				}
			}
			if got, _ := json.Marshal(merged); err == nil && string(got) != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	list, err := Decode([]resourceapi.DeviceAllocationConfiguration{ofKind("NICConfig", "")})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		kinds map[string]string
		words []string
	}{
		"for one of them":       {map[string]string{"g": "GPUConfig", "n": "NICConfig"}, nil},
		"for an alternative":    {map[string]string{"g/a": "GPUConfig"}, nil},
		"for none of the claim": {map[string]string{"g": "GPUConfig", "p": "PairConfig"}, []string{"kind: NICConfig", "GPUConfig and PairConfig"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := list.Check(test.kinds)
			if (err != nil) != (test.words != nil) || err != nil && failure.ClassOf(err) != failure.Invalid {
				t.Fatalf("error %v", err)
			}
			for _, word := range test.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q is not in %q", word, err)
				}
			}
		})
	}
}

func TestPlanOfNICs(t *testing.T) {
	decoded, err := v1alpha1.Decode([]byte(`{"apiVersion":"dovetail.dev/v1alpha1","kind":"PairConfig",
		"gpu":{"computeMode":"ExclusiveProcess"},
		"nic":{"interfaceName":"net1","mtu":9000,"addresses":["10.0.0.7/8"],"routes":[{"to":"172.16.0.0/12","via":"10.0.0.1","from":"10.0.0.7","metric":3}],
			"dscp":26,"requireLossless":true,"ncclTopology":false}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := plan.Config{ComputeMode: machine.ComputeModeExclusiveProcess, NIC: plan.NICConfig{
		InterfaceName: "net1", MTU: 9000, Addresses: []string{"10.0.0.7/8"},
		Routes:       []machine.Route{{To: "172.16.0.0/12", Via: "10.0.0.1", From: "10.0.0.7", Metric: 3}},
		TrafficClass: ptr.To(104), Lossless: true, Topology: ptr.To(false),
	}}
	if got := Plan(decoded); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	decoded, err = v1alpha1.Decode([]byte(`{"apiVersion":"dovetail.dev/v1alpha1","kind":"NICConfig",
		"addresses":["FD00:0::7/64"],"routes":[{"to":"fd01:0:0::/64","via":"FE80::0:1","from":"fd00::0:7"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want = plan.Config{NIC: plan.NICConfig{
		Addresses: []string{"fd00::7/64"}, Routes: []machine.Route{{To: "fd01::/64", Via: "fe80::1", From: "fd00::7"}},
	}}
	if got := Plan(decoded); !reflect.DeepEqual(got, want) {
		t.Errorf("as the kernel writes it: got %+v, want %+v", got, want)
	}
	for kind, want := range map[machine.Kind]string{
		machine.KindGPU: "GPUConfig", machine.KindMIG: "GPUConfig", machine.KindMPS: "GPUConfig",
		machine.KindNIC: "NICConfig", machine.KindRDMA: "NICConfig", machine.KindVF: "NICConfig", machine.KindPair: "PairConfig",
	} {
		if got := KindFor(kind); got != want {
			t.Errorf("%s takes %s, want %s", kind, got, want)
		}
	}
}
