package crash

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/sched"
)

// pod is a Pod with its claim.
type pod struct {
	claim *resourceapi.ResourceClaim
	gone  bool // only its claim's release is left
	// deleted: the claim was, by force, and the kubelet knows nothing of it any more.
	deleted bool
}

// arrive is a new claim, which is prepared where the scheduler finds room for it.
func (n *node) arrive() {
	n.arrived++
	c := n.request(fmt.Sprintf("c%d", n.arrived))
	fits, err := n.scheduler.AllocateOn(n.t.Context(), claimtest.Pool, c)
	must(n.t, err)
	if !fits {
		n.refused++
		if len(n.pods) > 0 {
			n.depart(n.pods[n.IntN(len(n.pods))])
		}
		return
	}
	c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: c.Name, UID: "pod"}}
	must(n.t, n.Store(c))
	p := &pod{claim: c}
	n.InUse[c.Name] = true
	n.pods = append(n.pods, p)
	n.ask(p)
}

// ask is the kubelet's call for a claim that a Pod needs. It says whether the claim is
// prepared now.
func (n *node) ask(p *pod) bool {
	if p.gone {
		return false
	}
	prepared := n.call(prepare, p, func() error {
		_, err := n.m.Prepare(n.t.Context(), p.claim)
		return err
	})
	if prepared {
		n.start(p)
	}
	return prepared
}

// depart is the end of a Pod: its claim is released, now or when the kubelet asks again.
func (n *node) depart(p *pod) {
	if !p.gone {
		p.gone, n.InUse[p.claim.Name] = true, false
		if p.deleted = n.IntN(20) == 0; p.deleted {
			must(n.t, n.Delete(p.claim.Name))
		}
	}
	if n.IntN(2) == 0 && !slices.Contains(n.sealed, p.claim.Name) {
		must(n.t, n.End(p.claim.Name))
	}
	if !n.released(p) {
		return
	}
	if !p.deleted {
		must(n.t, n.Delete(p.claim.Name))
	}
	n.scheduler.Release(p.claim)
	n.pods = slices.DeleteFunc(n.pods, func(q *pod) bool { return q == p })
}

// released says whether the claim is released, by the kubelet's call or, where it was
// deleted, by the agent itself.
func (n *node) released(p *pod) bool {
	if !p.deleted {
		return n.call(release, p, func() error { return n.m.Unprepare(n.t.Context(), claimtest.Reference(p.claim)) })
	}
	n.note("reconcile without %s %q", p.claim.Name, sched.Devices(p.claim))
	r, err := n.m.Reconcile(n.t.Context())
	for _, problem := range r.Problems {
		err = errors.Join(err, problem.Err)
	}
	n.allow("reconciliation", p, err)
	n.unchanged()
	records, err := n.m.Records()
	must(n.t, err)
	return !slices.ContainsFunc(records, func(r journal.Record) bool { return r.UID == string(p.claim.UID) })
}

// call is one of the kubelet, in one of ten cases after an agent was killed in it.
func (n *node) call(what string, p *pod, do func() error) bool {
	n.note("%s %s %q", what, p.claim.Name, sched.Devices(p.claim))
	if n.IntN(10) == 0 && n.Sharing != (away{}) { // in another process it is not away
		places := ways[what].places
		armed := fmt.Sprintf("%s %d", places[n.IntN(len(places))], 1+n.IntN(3))
		killed, err := kill(n.t, n.World, what, p.claim.Name, armed)
		n.note("killed at %s: %t, %v", armed, killed, err)
		n.allow(what, p, err)
		if killed {
			n.kills++
		}
		n.restart()
	}
	err := do()
	if err != nil {
		n.note("failed: %v", err)
		n.failures++
	}
	n.allow(what, p, err)
	n.unchanged()
	return err == nil
}

// allow fails the test for an error that no trouble excuses.
func (n *node) allow(what string, p *pod, err error) {
	n.t.Helper()
	switch {
	case err == nil:
	case what == prepare && n.changedByHand():
	case n.tolerant() && !strings.Contains(err.Error(), "is still held for claim"):
	default:
		n.t.Fatalf("%s of %s (%q): %v", what, p.claim.Name, sched.Devices(p.claim), err)
	}
}

// request is a random claim.
func (n *node) request(name string) *resourceapi.ResourceClaim {
	shared := slices.ContainsFunc(n.published.GPUs, func(g machine.GPU) bool { return !g.MIG.Enabled })
	if n.withNICs() && n.IntN(3) == 0 {
		return n.withNIC(name)
	}
	switch r := n.IntN(20); {
	case shared && r < 8:
		return n.share(name)
	case r < 10:
		configs := []string{"", claimtest.Exclusive, long, byMPS}
		return configured(sched.Claim(name, sched.Request("gpu", machine.KindGPU)), configs[n.IntN(len(configs))])
	case r < 14:
		return configured(sched.Claim(name, n.partition("a")), []string{"", byMPS}[r%2])
	case r < 16:
		return sched.Claim(name, sched.Request("a", machine.KindMIG, sched.AtLeast(fmt.Sprint(n.profile().Memory-uint64(n.IntN(1<<30))))))
	case r < 18:
		return sched.Claim(name, n.partition("a"), n.partition("b"), n.partition("c"))
	case r < 19:
		return sched.Match(sched.Claim(name, n.partition("a"), n.partition("b")), "parentUUID")
	default:
		return sched.Distinct(sched.Claim(name, n.partition("a"), n.partition("b")), "parentUUID")
	}
}

// share is one of a GPU, by MPS or by turns, or two of one GPU. An interval is the same
// for all: the scheduler knows nothing of intervals.
func (n *node) share(name string) *resourceapi.ResourceClaim {
	memory := fmt.Sprintf("memory=%dMi", 1+n.IntN(20<<10))
	switch r := n.IntN(6); {
	case r < 2:
		return configured(sched.Claim(name, sched.Share("a", machine.KindTimeSlice, memory)), []string{"", long}[r])
	case r < 5:
		return sched.Claim(name, sched.Share("a", machine.KindMPS, memory, fmt.Sprintf("compute=%d", n.IntN(60))))
	default:
		return sched.Match(sched.Claim(name, sched.Share("a", machine.KindMPS, memory), sched.Share("b", machine.KindMPS, "memory=1Gi")), "uuid")
	}
}

// configured gives the claim a configuration, or none, and returns it.
func configured(c *resourceapi.ResourceClaim, parameters string) *resourceapi.ResourceClaim {
	if parameters != "" {
		config := claimtest.Config(resourceapi.AllocationConfigSourceClaim, parameters)
		c.Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: config.DeviceConfiguration}}
	}
	return c
}

func (n *node) partition(name string) resourceapi.DeviceRequest {
	return sched.Request(name, machine.KindMIG, sched.Profile(n.profile().Name))
}

// profile is one of the machine's, small ones more often.
func (n *node) profile() machine.MIGProfile {
	profiles := slices.SortedFunc(slices.Values(n.published.GPUs[0].MIG.Profiles), func(a, b machine.MIGProfile) int {
		return a.ComputeSlices - b.ComputeSlices
	})
	return profiles[min(n.IntN(len(profiles)), n.IntN(len(profiles)))]
}
