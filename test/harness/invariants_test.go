package harness

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

const uid = "11111111-2222-3333-4444-555555555555"

// scene is a node on which one Pod runs with one GPU for one process alone, and
// all is as it should be.
type scene struct {
	snapshot Snapshot
	claim    resourceapi.ResourceClaim
	pod      corev1.Pod
}

func newScene(t *testing.T) *scene {
	t.Helper()
	intent, err := json.Marshal(plan.Step{Kind: plan.SetComputeMode, GPU: "GPU-a", ComputeMode: machine.ComputeModeExclusiveProcess})
	if err != nil {
		t.Fatal(err)
	}
	record, err := journal.Marshal(&journal.Entry{
		Claim: journal.Claim{Namespace: "ns", Name: "c", UID: uid}, Holds: []string{"gpu-1b-00"},
		Steps: []journal.Step{{Intent: intent, Outcome: json.RawMessage(`{}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{snapshot: Snapshot{
		Files: map[string][]byte{
			ClaimsDir + "/" + uid + ".json":                 record,
			cdiClaim + uid + ".json":                        []byte("{}"),
			cdiMeta + uid + "_gpu.json":                     []byte("{}"),
			metaDir + "/ns_c/gpu/metadata.json":             []byte("{}"),
			PluginDir + "/dra.sock":                         nil,
			ClaimsDir + "/set-aside/something-for-you.json": nil,
		},
		Machine: &simulator.State{
			Spec: simulator.Spec{GPUs: []simulator.GPUSpec{{UUID: "GPU-a", Model: model}, {UUID: "GPU-b", Model: model}}},
			GPUs: []simulator.GPUState{{ComputeMode: machine.ComputeModeExclusiveProcess}, {ComputeMode: machine.ComputeModeDefault}},
		},
	}}
	s.claim.ObjectMeta = metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: uid}
	s.claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "gpu", Driver: Driver, Pool: "node", Device: "gpu-1b-00"}},
	}}
	s.claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "pod"}}
	s.pod.UID = "pod"
	s.pod.Spec.NodeName = "node"
	s.pod.Status.Phase = corev1.PodRunning
	return s
}

// sceneTest changes a scene; want are words of the differences that are then found.
type sceneTest struct {
	name   string
	change func(*scene)
	want   []string
}

func finds(t *testing.T, scene func(*testing.T) *scene, tests []sceneTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := scene(t)
			test.change(s)
			got := compare("node", &s.snapshot, []resourceapi.ResourceClaim{s.claim}, []corev1.Pod{s.pod})
			for _, want := range test.want {
				if !strings.Contains(strings.Join(got, "\n"), want) {
					t.Errorf("found %q, want one with %q", got, want)
				}
			}
			if len(got) != len(test.want) {
				t.Errorf("found %q, want %d differences", got, len(test.want))
			}
		})
	}
}

// TestInvariantsCanFail: a check that finds nothing has to be one that could.
func TestInvariantsCanFail(t *testing.T) {
	record := ClaimsDir + "/" + uid + ".json"
	finds(t, newScene, []sceneTest{
		{"all is well", func(*scene) {}, nil},
		{"waiting for its turn", func(s *scene) {
			s.pod.Status.Phase = corev1.PodPending
			s.snapshot.Files = nil
			s.snapshot.Machine = nil
		}, nil},
		{"no record", func(s *scene) { delete(s.snapshot.Files, record) }, []string{
			"not in the journal", "has a CDI specification, but is not in the journal", "in compute mode ExclusiveProcess, want Default",
		}},
		{"damaged record", func(s *scene) { s.snapshot.Files[record] = []byte("{") }, []string{"cannot be read", "want Default"}},
		{"no CDI specification", func(s *scene) { delete(s.snapshot.Files, cdiClaim+uid+".json") }, []string{"has no CDI specification"}},
		{"half a CDI specification", func(s *scene) { s.snapshot.Files[cdiClaim+uid+".json"] = []byte("{") }, []string{"is no JSON"}},
		{"Pod gone", func(s *scene) { s.pod.UID = "another" }, []string{
			"no Pod on this node has it", "metadata of a claim that no Pod has", "CDI specification of the metadata",
		}},
		{"another device", func(s *scene) { s.claim.Status.Allocation.Devices.Results[0].Device = "gpu-2b-00" }, []string{"holds [gpu-1b-00]"}},
		{"hardware changed", func(s *scene) { s.snapshot.Machine.GPUs[1].ComputeMode = machine.ComputeModeProhibited }, []string{"want Default"}},
		{"temporary file", func(s *scene) { s.snapshot.Files[ClaimsDir+"/.tmp-x"] = nil }, []string{"temporary file"}},
	})
}
