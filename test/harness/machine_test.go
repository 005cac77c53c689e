package harness

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

func TestOrigins(t *testing.T) {
	spec := simulator.Spec{
		GPUs: []simulator.GPUSpec{{UUID: "GPU-a"}, {UUID: "GPU-b"}},
		NICs: []simulator.NICSpec{{Address: machine.Address{Bus: 0x18}}},
	}
	device := func(kind, attribute, id string) resourceapi.Device {
		return resourceapi.Device{Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"type": {StringValue: &kind}, resourceapi.QualifiedName(attribute): {StringValue: &id},
		}}
	}
	monitor := func(uuid string) resourceapi.Device { return device("monitor", "uuid", uuid) }
	nic := func(kind, address string) resourceapi.Device { return device(kind, "physicalFunction", address) }
	for name, test := range map[string]struct {
		devices    map[string]resourceapi.Device
		gpus, nics int
		foreign    bool
	}{
		"nothing":                {},
		"all":                    {devices: map[string]resourceapi.Device{"1": monitor("GPU-a"), "2": monitor("GPU-b"), "3": nic("nic", "0000:18:00.0")}, gpus: 2, nics: 1},
		"what one NIC is twice":  {devices: map[string]resourceapi.Device{"1": nic("nic", "0000:18:00.0"), "2": nic("rdma", "0000:18:00.0")}, nics: 1},
		"partitions tell no GPU": {devices: map[string]resourceapi.Device{"1": device("mig", "uuid", "")}},
		"another's GPU":          {devices: map[string]resourceapi.Device{"1": monitor("GPU-a"), "2": monitor("GPU-c")}, gpus: 1, foreign: true},
		"another's NIC":          {devices: map[string]resourceapi.Device{"1": nic("vf", "0000:19:00.0")}, foreign: true},
	} {
		t.Run(name, func(t *testing.T) {
			gpus, nics, foreign := origins(test.devices, spec)
			if gpus != test.gpus || nics != test.nics || foreign != test.foreign {
				t.Errorf("got %d GPUs, %d NICs, foreign %t; want %d, %d, %t", gpus, nics, foreign, test.gpus, test.nics, test.foreign)
			}
		})
	}
}
