package e2e

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestJournalDamaged changes the record of a running Pod's claim while no agent
// runs. Whatever it is then: people are told, the Pod runs on, its GPU is given to
// nobody else, and the Pod can go.
func TestJournalDamaged(t *testing.T) {
	tests := []struct {
		name   string
		damage string // a shell command on the file $f
		reason string // of the event about the node
		words  string // in its message
		metric string
		// repaired says whether the agent can go on by itself.
		repaired bool
	}{
		{"truncated", `truncate -s 40 $f`, "JournalDamaged", "rebuilt from the claim's CDI specification", "1", true},
		{"empty", `truncate -s 0 $f`, "JournalDamaged", "rebuilt from the claim's CDI specification", "1", true},
		{"trailing garbage", `echo '}garbage' >> $f`, "JournalDamaged", "rebuilt from the claim's CDI specification", "1", true},
		{"lost", `rm $f`, "JournalDamaged", "rebuilt from the claim's CDI specification", "1", true},
		{"newer version", `sed -i 's/"version":1/"version":99/' $f`, "ClaimNotMended", "run the version that wrote it", "0", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := alone(t)
			e.agentBack(node1)
			gpu := e.gpu(node1, 0)
			e.apply(exclusive("one", gpu.Spec.UUID))
			e.pod("train", fromTemplate("one"))
			e.verify("train")
			check := e.undisturbed("train")
			uid := string(e.claimOfPod("train").UID)

			e.agentOff(node1)
			original := e.recorded(node1, uid)
			file := harness.ClaimsDir + "/" + uid + ".json"
			restored := test.repaired
			restore := func() { // the agent that wrote it comes back
				if !restored {
					restored = true
					e.agentOff(node1)
					e.must(e.WriteFile(e.ctx, node1, file, string(original)))
					e.agentOn(node1)
				}
			}
			_, err := e.Shell(e.ctx, node1, "f="+file+"; "+test.damage)
			e.must(err)
			e.afterwards(restore)
			e.agentOn(node1)
			who := uid
			if !test.repaired {
				who = e.namespace + "/train-one-" // a newer record still tells
			}
			e.nodeEvent(node1, test.reason, who, test.words)
			e.metric(node1, "dovetail_journal_damaged_total", test.metric)

			e.allocateByHand(template("thief", gpuRequest), "thief",
				resourceapi.DeviceRequestAllocationResult{Pool: node1, Device: deviceName(gpu)})
			e.pod("thief", fromClaim("thief"), bound(node1))
			e.prepareFailed("thief", deviceName(gpu), "still held for claim "+e.namespace+"/train-one-")
			e.gone("thief")
			check()
			e.computeMode(node1, 0, machine.ComputeModeExclusiveProcess)

			restore()
			e.gone("train")
			e.computeMode(node1, 0, machine.ComputeModeDefault)
		})
	}
}
