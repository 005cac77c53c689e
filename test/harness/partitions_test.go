package harness

import (
	"encoding/json"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

const model = "h100-sxm5-80gb"

// newPartitionScene is a node on which one Pod runs with one partition, beside one
// that the machine has from its boot on, and all is as it should be.
func newPartitionScene(t *testing.T) *scene {
	t.Helper()
	const device = "mig-1b-00-1g10gb-4"
	partition := &plan.Partition{Device: device, Profile: "1g.10gb", ProfileID: 19, Placement: machine.Placement{Start: 4, Size: 1}}
	raw := func(value any) json.RawMessage { return marshalled(t, value) }
	record, err := journal.Marshal(&journal.Entry{
		Claim: journal.Claim{Namespace: "ns", Name: "c", UID: uid}, Holds: []string{device, "gpu-1b-00/memory-unit-4"},
		Steps: []journal.Step{
			{Intent: raw(plan.Step{Kind: plan.EnableMIG, GPU: "GPU-a"}), Outcome: json.RawMessage(`{"done":true}`)},
			{Intent: raw(plan.Step{Kind: plan.MakeGPUInstance, GPU: "GPU-a", Partition: partition}), Outcome: json.RawMessage(`{"done":true,"gpuInstance":7}`)},
			{Intent: raw(plan.Step{Kind: plan.MakeComputeInstance, GPU: "GPU-a", Partition: partition}),
				Outcome: json.RawMessage(`{"done":true,"gpuInstance":7,"computeInstance":{"id":0,"computeSlices":1,"uuid":"MIG-a"}}`)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(t)
	s.claim.Status.Allocation.Devices.Results[0].Device = device
	s.snapshot.Files[ClaimsDir+"/"+uid+".json"] = record
	s.snapshot.Machine = &simulator.State{
		Spec: simulator.Spec{GPUs: []simulator.GPUSpec{
			{UUID: "GPU-a", Model: model},
			{UUID: "GPU-b", Model: model, MIG: true, Partitions: []simulator.PartitionSpec{{Profile: "3g.40gb", Start: 4}}},
		}},
		GPUs: []simulator.GPUState{
			{ComputeMode: machine.ComputeModeDefault, MIGEnabled: true, Instances: []machine.GPUInstance{
				{ID: 7, ProfileID: 19, Placement: machine.Placement{Start: 4, Size: 1}, ComputeInstances: []machine.ComputeInstance{{ComputeSlices: 1, UUID: "MIG-a"}}},
			}},
			{ComputeMode: machine.ComputeModeDefault, MIGEnabled: true, Instances: []machine.GPUInstance{
				{ID: 1, ProfileID: 9, Placement: machine.Placement{Start: 4, Size: 4}, ComputeInstances: []machine.ComputeInstance{{ComputeSlices: 3, UUID: "MIG-b"}}},
			}},
		},
	}
	return s
}

func marshalled(t *testing.T, value any) json.RawMessage {
	t.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestPartitionInvariantsCanFail(t *testing.T) {
	finds(t, newPartitionScene, []sceneTest{
		{"all is well", func(*scene) {}, nil},
		{"not made", func(s *scene) { s.snapshot.Machine.GPUs[0].Instances = nil }, []string{
			"partition mig-1b-00-1g10gb-4 of claim ns/c does not exist", "does not exist", // both of its instances
		}},
		{"another instance", func(s *scene) { s.snapshot.Machine.GPUs[0].Instances[0].ID = 8 }, []string{
			"is GPU instance 8, not the one on record", "is GPU instance 8",
		}},
		{"no compute instance", func(s *scene) { s.snapshot.Machine.GPUs[0].Instances[0].ComputeInstances = nil }, []string{"has compute instances []"}},
		{"left over", func(s *scene) { delete(s.snapshot.Files, ClaimsDir+"/"+uid+".json") }, []string{
			"not in the journal", "but is not in the journal", "GPU instance that no claim has", "MIG mode of GPU 0000:00:00.0 (GPU-a) is true, want false",
		}},
		{"MIG mode off", func(s *scene) { s.snapshot.Machine.GPUs[1].MIGEnabled = false }, []string{"(GPU-b) is false, want true"}},
		{"one that somebody made", func(s *scene) {
			s.snapshot.Machine.GPUs[1].Instances[0].Placement.Start = 0
		}, []string{"GPU instance that no claim has"}},
		{"another device", func(s *scene) {
			s.claim.Status.Allocation.Devices.Results = append(s.claim.Status.Allocation.Devices.Results,
				resourceapi.DeviceRequestAllocationResult{Driver: Driver, Pool: "node", Device: "mig-1b-00-1g10gb-5"})
		}, []string{"holds [mig-1b-00-1g10gb-4] according to the journal"}},
	})
}
