package crash

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
)

var (
	arrivals = flag.Int("arrivals", 1000, "claims that arrive on each machine")
	seed     = flag.Uint64("seed", 0, "of the random arrivals; 0: another one each time")
)

// forNICs are machines whose GPUs are as others': fewer claims do.
var forNICs = []string{"hgx-4nic", "sriov"}

// TestRandomArrivals lets claims come and go, as the scheduler and the kubelet would
// have it, while agents are killed, calls fail, GPUs fall off the bus, drivers are loaded
// anew, monitors hold what is to be destroyed, and people partition GPUs by hand.
func TestRandomArrivals(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	for _, name := range append([]string{"dgx-h100", "a30", "rtx-pro-6000", "static-mig", "mps-v3"}, forNICs...) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := *arrivals
			if slices.Contains(forNICs, name) {
				want /= 4
			}
			n := newNode(t, name, first)
			defer n.explain(fmt.Sprintf("go test ./test/crash -run 'TestRandomArrivals/%s' -arrivals %d -seed %d", name, *arrivals, first))
			for n.arrived < want {
				n.round()
			}
			n.empty()
			t.Logf("seed %d: %+v", first, n.tally)
		})
	}
}

// round is some calls, perhaps in trouble, until all is well again.
func (n *node) round() {
	if n.IntN(5) < 2 {
		n.begin()
	}
	for range 1 + n.IntN(8) {
		n.step()
	}
	n.calm()
}

func (n *node) step() {
	switch r := n.IntN(20); {
	case r < 10 || len(n.pods) == 0:
		n.arrive()
	case r < 17:
		n.depart(n.pods[n.IntN(len(n.pods))])
	case r < 19:
		n.ask(n.pods[n.IntN(len(n.pods))])
	default:
		n.restart()
	}
}

// calm ends the trouble: then everything must be put right, by the agent alone or when
// the kubelet asks again.
func (n *node) calm() {
	n.end()
	n.note("calm")
	if n.IntN(2) == 0 {
		n.restart()
	} else {
		problems, err := n.m.Mend(n.t.Context())
		n.check(err, problems)
	}
	if n.stale {
		n.publish()
	}
	for _, p := range slices.Clone(n.pods) {
		if !p.gone && (n.trouble == nil || n.ask(p)) {
			continue
		}
		if !p.gone {
			n.evicted++
		}
		n.depart(p)
	}
	n.trouble = nil
	n.invariants()
}

// invariants: hardware, records and the runtime's files say the same, nobody has what
// another one has, and nothing is left over.
func (n *node) invariants() {
	var names []string
	for _, p := range n.pods {
		names = append(names, p.claim.Name)
	}
	for _, d := range differences(n.t, n.World, names...) {
		n.t.Error(d)
	}
	if n.t.Failed() {
		n.t.FailNow()
	}
}

// empty releases everything.
func (n *node) empty() {
	for _, p := range slices.Clone(n.pods) {
		n.depart(p)
	}
	n.invariants()
	if left := n.scheduler.Allocated(claimtest.Pool); len(left) > 0 {
		n.t.Errorf("the scheduler has allocated %q", left)
	}
}
