package parameters

import (
	"encoding/json"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/failure"
)

func config(source resourceapi.AllocationConfigSource, driver, fields string, requests ...string) resourceapi.DeviceAllocationConfiguration {
	return resourceapi.DeviceAllocationConfiguration{
		Source: source, Requests: requests,
		DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
			Driver:     driver,
			Parameters: runtime.RawExtension{Raw: []byte(`{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig"` + fields + `}`)},
		}},
	}
}

func TestFor(t *testing.T) {
	const ours, class, claim = "dovetail.dev", resourceapi.AllocationConfigSourceClass, resourceapi.AllocationConfigSourceClaim
	for name, test := range map[string]struct {
		configs []resourceapi.DeviceAllocationConfiguration
		want    string // of the configuration without its kind
		words   []string
	}{
		"class before claim, wherever they stand": {
			[]resourceapi.DeviceAllocationConfiguration{
				config(claim, ours, `,"enforcement":"None"`), config(class, ours, `,"enforcement":"Strict","computeMode":"Default"`),
			}, `{"computeMode":"Default","enforcement":"None"}`, nil,
		},
		"another driver's": {
			[]resourceapi.DeviceAllocationConfiguration{config(claim, "gpu.example.com", `,"anything":1`)}, `{}`, nil,
		},
		"the request stands for its alternatives": {
			[]resourceapi.DeviceAllocationConfiguration{config(claim, ours, `,"enforcement":"None"`, "gpu")}, `{"enforcement":"None"}`, nil,
		},
		"another alternative": {
			[]resourceapi.DeviceAllocationConfiguration{config(claim, ours, `,"enforcement":"None"`, "gpu/small")}, `{}`, nil,
		},
		"locked": {
			[]resourceapi.DeviceAllocationConfiguration{
				config(class, ours, `,"locked":["enforcement"]`, "gpu/big"), config(claim, ours, `,"enforcement":"None"`, "gpu"),
			}, ``, []string{`spec.devices.config for requests ["gpu"] (config 1 of the allocation)`, "enforcement: Forbidden", "locked"},
		},
		"good alone, not together": {
			[]resourceapi.DeviceAllocationConfiguration{
				config(class, ours, `,"computeMode":"Default"`), config(claim, ours, `,"sharing":{"strategy":"MPS"}`),
			}, ``, []string{"request gpu/big: class and claim together", "computeMode"},
		},
		"what does not decode": {
			[]resourceapi.DeviceAllocationConfiguration{config(class, ours, `,"mode":1`)},
			``, []string{"the DeviceClass's spec.config (config 0 of the allocation)", `unknown field "mode"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []byte
			list, err := Decode(test.configs)
			if err == nil {
				merged, mergeErr := list.For("gpu/big", v1alpha1.GPUConfigKind)
				got, _ = json.Marshal(merged)
				err = mergeErr
			}
			if test.words == nil {
				if err != nil || string(got) != test.want {
					t.Errorf("got %s, %v, want %s", got, err, test.want)
				}
				return
			}
			if failure.ClassOf(err) != failure.Invalid {
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
