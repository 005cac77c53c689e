package harness

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// newShareScene is a node on which one Pod runs with two shares of one GPU by MPS, and
// a time slice of another, and all is as it should be.
func newShareScene(t *testing.T) *scene {
	t.Helper()
	raw := func(value any) json.RawMessage { return marshalled(t, value) }
	set := []plan.Member{{GPU: "GPU-a"}}
	record, err := journal.Marshal(&journal.Entry{
		Claim: journal.Claim{Namespace: "ns", Name: "c", UID: uid}, Joins: map[string]string{"gpu-1b-00": "mps-1b-00", "gpu-1b-00/memory-unit-0": "mps-1b-00", "gpu-43-00": "timeslice-43-00"},
		Steps: []journal.Step{
			{Intent: raw(plan.Step{Kind: plan.SetTimeSlice, GPU: "GPU-b", Interval: machine.TimeSliceLong}), Outcome: json.RawMessage(`{"done":true}`)},
			{Intent: raw(plan.Step{Kind: plan.SetComputeMode, GPU: "GPU-a", ComputeMode: machine.ComputeModeExclusiveProcess, ForMPS: true}), Outcome: json.RawMessage(`{"done":true}`)},
			{Intent: raw(plan.Step{Kind: plan.StartMPS, GPU: "GPU-a", Set: set}), Outcome: json.RawMessage(`{"done":true,"devices":["GPU-a"]}`)},
			{Intent: raw(plan.Step{Kind: plan.MakeNamespace, GPU: "GPU-a", Set: set, Namespace: "share-1"}), Outcome: json.RawMessage(`{"done":true,"devices":["GPU-a"]}`)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(t)
	results := &s.claim.Status.Allocation.Devices.Results
	*results = append(*results, (*results)[0], (*results)[0])
	(*results)[0].Device, (*results)[1].Device, (*results)[2].Device = "mps-1b-00", "mps-1b-00", "timeslice-43-00"
	s.snapshot.Files[ClaimsDir+"/"+uid+".json"] = record
	for _, dir := range []string{"0123", "0123/pipe"} {
		s.snapshot.Files[MPSDir+"/"+dir+"/"] = nil
	}
	s.snapshot.Files[MPSDir+"/lock"] = nil
	s.snapshot.Files[MPSDir+"/0123/set.json"] = []byte(`{"devices":["GPU-a"],"namespaces":{"share-1":{}}}`)
	s.snapshot.Machine.GPUs[1].TimeSlice = machine.TimeSliceLong
	s.snapshot.Processes = []Process{
		{PID: 10, Command: []string{"/usr/bin/nvidia-cuda-mps-control", "-f"}, Devices: []string{"GPU-a"}},
		{PID: 11, Command: []string{"nvidia-cuda-mps-server"}, Devices: []string{"GPU-a"}},
	}
	return s
}

func TestShareInvariantsCanFail(t *testing.T) {
	record := MPSDir + "/0123/set.json"
	finds(t, newShareScene, []sceneTest{
		{"all is well", func(*scene) {}, nil},
		{"a command to a control daemon", func(s *scene) {
			s.snapshot.Processes = append(s.snapshot.Processes, Process{PID: 12, Command: []string{"/usr/bin/nvidia-cuda-mps-control"}, Devices: []string{"GPU-b"}})
		}, nil},
		{"no control daemon", func(s *scene) { s.snapshot.Processes = s.snapshot.Processes[1:] }, []string{"over GPU-a, 0 run"}},
		{"two of them", func(s *scene) { s.snapshot.Processes = append(s.snapshot.Processes, s.snapshot.Processes[0]) }, []string{"over GPU-a, 2 run"}},
		{"processes that are left", func(s *scene) {
			s.snapshot.Processes = append(s.snapshot.Processes, slices.Clone(s.snapshot.Processes)...)
			s.snapshot.Processes[2].Devices, s.snapshot.Processes[3].Devices = []string{"GPU-b"}, []string{"GPU-b"}
		}, []string{"process 10 (/usr/bin/nvidia-cuda-mps-control -f) is left over GPU-b", "process 11"}},
		{"no record of dovetail-mps", func(s *scene) { delete(s.snapshot.Files, record) }, []string{"directory 0123 of MPS has no record", "on record: false"}},
		{"a directory that is left", func(s *scene) {
			s.snapshot.Files[MPSDir+"/4567/set.json"] = []byte(`{"devices":["GPU-b"]}`)
		}, []string{"directory 4567 of MPS is left, over GPU-b"}},
		{"an empty directory that is left", func(s *scene) { s.snapshot.Files[MPSDir+"/4567/"] = nil }, []string{"directory 4567 of MPS has no record"}},
		{"another namespace", func(s *scene) {
			s.snapshot.Files[record] = []byte(`{"devices":["GPU-a"],"namespaces":{"share-2":{}}}`)
		}, []string{"share-2 is of no claim", "share-1 is a claim's, and does not exist"}},
		{"compute mode", func(s *scene) { s.snapshot.Machine.GPUs[0].ComputeMode = machine.ComputeModeDefault }, []string{"want ExclusiveProcess"}},
		{"time slice", func(s *scene) { s.snapshot.Machine.GPUs[1].TimeSlice = "" }, []string{"GPU-b has time slice Default, want Long"}},
		{"time slice that is left", func(s *scene) { s.snapshot.Machine.GPUs[0].TimeSlice = machine.TimeSliceShort }, []string{"GPU-a has time slice Short, want Default"}},
		{"another device", func(s *scene) { s.claim.Status.Allocation.Devices.Results[2].Device = "timeslice-1b-00" }, []string{"holds [mps-1b-00 timeslice-43-00]"}},
	})
}

func TestParseProcesses(t *testing.T) {
	got, err := parseProcesses("12 GPU-a,GPU-b /usr/bin/nvidia-cuda-mps-control -f -p 3 \n13  \n14 GPU-a nvidia-cuda-mps-server \n")
	if err != nil || len(got) != 2 || !got[0].Control() || got[0].Server() || !slices.Equal(got[0].Devices, []string{"GPU-a", "GPU-b"}) ||
		got[1].PID != 14 || got[1].Control() || !got[1].Server() {
		t.Errorf("%+v, %v", got, err)
	}
}
