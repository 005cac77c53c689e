package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/description"
	"github.com/dovetail-dra/dovetail/test/sched"
)

// node is a world with a scheduler and a kubelet.
type node struct {
	*claimtest.World
	*rand.Rand
	t         *testing.T
	m         *claim.Manager
	scheduler *sched.Scheduler
	// published is what the scheduler knows; stale that the machine has been changed
	// by hand since.
	published machine.Machine
	pool      catalog.Pool
	stale     bool
	// trouble of this round; nil: none.
	trouble *trouble
	holds   []*simulator.Hold
	pods    []*pod
	recent  []string
	network
	tally
}

// tally is what has happened.
type tally struct{ arrived, refused, kills, troubles, failures, evicted, remnants int }

// most GPUs: with few there is less room, and more happens to each.
const most = 3

func newNode(t *testing.T, name string, seed uint64) *node {
	text, err := machines.Description(name)
	must(t, err)
	spec, err := description.Parse(text)
	must(t, err)
	spec.GPUs = spec.GPUs[:min(most, len(spec.GPUs))]
	w, err := claimtest.CreateOf(filepath.Join(t.TempDir(), "world"), spec)
	must(t, err)
	w.InUse = map[string]bool{}
	n := &node{World: w, Rand: rand.New(rand.NewPCG(seed, 0)), t: t, scheduler: sched.New()}
	if name == "a30" { // of no use without
		for _, gpu := range n.gpus() {
			must(t, errors.Join(w.Machine.SetMIGMode(gpu, true), w.Machine.Reset(gpu)))
		}
		must(t, w.Settle(t.Context()))
	}
	n.restart()
	n.publish()
	return n
}

// restart is a fresh agent.
func (n *node) restart() {
	m, problems, err := n.Manager(n.t.Context())
	if errors.Is(err, failure.Absent) && n.tolerant() {
		return // no driver: the old one goes on
	}
	n.check(err, problems)
	n.m = m
	n.unchanged()
}

// check allows problems in trouble alone.
func (n *node) check(err error, problems []claim.Problem) {
	n.t.Helper()
	if err != nil || len(problems) > 0 && !n.tolerant() && !n.changedByHand() {
		n.t.Fatalf("recovery: %v, %v", problems, err)
	}
}

// publish has the scheduler see the machine as it is now.
func (n *node) publish() {
	must(n.t, n.Look(n.t.Context(), n.m))
	n.published, n.stale = *n.m.Machine(), false
	n.pool = n.built(n.published)
	n.scheduler.Publish(claimtest.Pool, n.pool)
}

// built is the machine as it would be published now.
func (n *node) built(m machine.Machine) catalog.Pool {
	prepared, err := n.m.Prepared()
	must(n.t, err)
	return catalog.Build(m, catalog.Options{Held: prepared.Held})
}

// unchanged: claims alone never change what is published, but for what is only there for
// them.
func (n *node) unchanged() {
	if n.stale || n.published.BootID == "" {
		return
	}
	must(n.t, n.Look(n.t.Context(), n.m))
	if before, now := plain(n.published), plain(*n.m.Machine()); !now.Equal(&before) {
		n.t.Fatalf("published would be\n%+v, it was\n%+v", now, before)
	}
	switch {
	case n.pool.ForClaims:
		n.remnants++
		n.publish()
	case n.built(n.published).ForClaims:
		n.t.Fatal("a claim has what is not published, although the machine is as it was")
	}
}

// plain leaves out what claims do change, and is not published.
func plain(m machine.Machine) machine.Machine {
	m.GPUs = slices.Clone(m.GPUs)
	for i := range m.GPUs {
		m.GPUs[i].ComputeMode = ""
	}
	m.NICs = slices.Clone(m.NICs)
	for i := range m.NICs {
		m.NICs[i].Away = false
		m.NICs[i].VFs = slices.Clone(m.NICs[i].VFs)
		for j := range m.NICs[i].VFs {
			m.NICs[i].VFs[j].Away = false
		}
	}
	return m
}

// gpus are all UUIDs.
func (n *node) gpus() []string {
	state, err := n.Machine.State()
	must(n.t, err)
	var uuids []string
	for _, gpu := range state.Spec.GPUs {
		uuids = append(uuids, gpu.UUID)
	}
	return uuids
}

// note remembers what was done lately.
func (n *node) note(format string, args ...any) {
	n.recent = append(n.recent, fmt.Sprintf(format, args...))
	n.recent = n.recent[max(0, len(n.recent)-40):]
}

// explain tells what led to a failure, and how to repeat it.
func (n *node) explain(command string) {
	if !n.t.Failed() {
		return
	}
	for _, line := range n.recent {
		n.t.Log(line)
	}
	n.t.Log("again: " + command)
}
