package plan

import (
	"reflect"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func twoGPUs() *machine.Machine {
	return &machine.Machine{GPUs: []machine.GPU{
		{UUID: "GPU-a", Address: machine.Address{Bus: 0x1b}},
		{UUID: "GPU-b", Address: machine.Address{Bus: 0x43}},
	}}
}

func TestPrepare(t *testing.T) {
	for name, test := range map[string]struct {
		results []Result
		want    Plan
	}{
		"a GPU as it is": {
			[]Result{{Request: "gpu", Device: "gpu-1b-00"}},
			Plan{
				Locks: []string{"gpu-1b-00"}, Holds: []string{"gpu-1b-00"},
				Devices: []Device{{Request: "gpu", Name: "gpu-1b-00", Kind: "gpu", GPU: "GPU-a"}},
			},
		},
		"two in the order of the allocation, one of them for one process": {
			[]Result{{Request: "b", Device: "gpu-43-00", Config: Config{ComputeMode: machine.ComputeModeExclusiveProcess}}, {Request: "a/small", Device: "gpu-1b-00"}},
			Plan{
				Locks: []string{"gpu-43-00", "gpu-1b-00"}, Holds: []string{"gpu-43-00", "gpu-1b-00"},
				Steps:   []Step{{Kind: SetComputeMode, GPU: "GPU-b", ComputeMode: machine.ComputeModeExclusiveProcess}},
				Devices: []Device{{Request: "b", Name: "gpu-43-00", Kind: "gpu", GPU: "GPU-b"}, {Request: "a/small", Name: "gpu-1b-00", Kind: "gpu", GPU: "GPU-a"}},
			},
		},
		"admin access holds and changes nothing, whatever is configured": {
			[]Result{{Request: "all", Device: "gpu-1b-00", AdminAccess: true, Config: Config{ComputeMode: machine.ComputeModeExclusiveProcess}}},
			Plan{Devices: []Device{{Request: "all", Name: "gpu-1b-00", Kind: "gpu", GPU: "GPU-a", AdminAccess: true}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Prepare(Allocation{Results: test.results}, twoGPUs())
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestPrepareRefuses(t *testing.T) {
	sick := twoGPUs()
	sick.GPUs[0].Health = machine.Health{Reason: machine.FaultResetRequired, Message: "reset it"}
	warned := twoGPUs()
	warned.GPUs[0].Health = machine.Health{Reason: "xid", Message: "Xid 63"}
	for name, test := range map[string]struct {
		machine *machine.Machine
		results []Result
		class   error
		message string
	}{
		"no such device":        {twoGPUs(), []Result{{Request: "r", Device: "gpu-99-00"}}, failure.Absent, "device gpu-99-00 is not on this node"},
		"a device that is sick": {sick, []Result{{Request: "r", Device: "gpu-1b-00"}}, failure.Busy, "reset it"},
		"one device twice":      {twoGPUs(), []Result{{Request: "r", Device: "gpu-1b-00"}, {Request: "s", Device: "gpu-1b-00"}}, failure.Conflict, "twice"},
		"a look without admin":  {twoGPUs(), []Result{{Request: "r", Device: "monitor-1b-00"}}, failure.Invalid, "set adminAccess to true"},
		"a look":                {twoGPUs(), []Result{{Request: "r", Device: "monitor-1b-00", AdminAccess: true}}, nil, ""},
		"sick but admin":        {sick, []Result{{Request: "r", Device: "gpu-1b-00", AdminAccess: true}}, nil, ""},
		"tainted but tolerated": {warned, []Result{{Request: "r", Device: "gpu-1b-00"}}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Prepare(Allocation{Results: test.results}, test.machine)
			if failure.ClassOf(err) != test.class || err != nil && !strings.Contains(err.Error(), test.message) {
				t.Errorf("error %v", err)
			}
		})
	}
}
