package crash

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/test/sched"
)

// network is what NICs have, and pods besides.
type network struct {
	taken  []string // names of interfaces, by others
	sealed []string // names of claims whose Pods' namespaces cannot be reached
}

// withNICs says whether the machine offers any.
func (n *node) withNICs() bool {
	return slices.ContainsFunc(n.published.NICs, func(nic machine.NIC) bool { return nic.Offered() })
}

// withNIC is a claim of a NIC, a VF, an RDMA device, or of pairs.
func (n *node) withNIC(name string) *resourceapi.ResourceClaim {
	offered := func(kind machine.Kind) bool {
		return slices.ContainsFunc(n.published.Devices(), func(d machine.Device) bool { return d.Kind == kind })
	}
	switch r := n.IntN(10); {
	case r < 2 && offered(machine.KindRDMA):
		return sched.Claim(name, sched.Request("a", machine.KindRDMA))
	case r < 4 && offered(machine.KindVF):
		return configured(sched.Claim(name, sched.Request("a", machine.KindVF)), []string{"", renamed}[r%2])
	case r < 6 && offered(machine.KindNIC):
		return configured(sched.Claim(name, sched.Request("a", machine.KindNIC)), []string{"", renamed}[r%2])
	case r < 7:
		return sched.Claim(name, sched.Several(2, sched.Request("a", machine.KindPair)))
	case r < 8:
		return sched.Claim(name, sched.Request("a", machine.KindPair), n.partition("b"))
	default:
		return configured(sched.Claim(name, sched.Request("a", machine.KindPair)), []string{"", pairExclusive}[r%2])
	}
}

// start is a container of the Pod's, the first or a further one; before, the Pod's
// network may have ended and be another.
func (n *node) start(p *pod) {
	if p.gone || slices.Contains(n.sealed, p.claim.Name) {
		return
	}
	if n.IntN(4) == 0 {
		n.note("the network of %s ends", p.claim.Name)
		must(n.t, n.End(p.claim.Name))
	}
	n.note("start %s", p.claim.Name)
	if err := n.Start(p.claim.Name); err != nil && !n.tolerant() {
		n.t.Fatalf("start of %s: %v", p.claim.Name, err)
	}
}

// takeName of a NIC that is in a Pod.
func (n *node) takeName() {
	for _, nic := range n.published.NICs {
		if len(nic.Netdevs) > 0 && n.Machine.TakeName(nic.Netdevs[0].Name) == nil {
			n.note("name %s is taken", nic.Netdevs[0].Name)
			n.taken = append(n.taken, nic.Netdevs[0].Name)
		}
	}
}

// seal lets namespaces of Pods end for as long as the trouble lasts.
func (n *node) seal() {
	for _, p := range n.pods {
		if n.IntN(2) == 0 {
			n.note("the network of %s is about to end", p.claim.Name)
			must(n.t, n.Machine.SealNamespace(claimtest.Namespace(p.claim.Name)))
			n.sealed = append(n.sealed, p.claim.Name)
		}
	}
}

func (n *node) endNICs() {
	for _, claim := range n.sealed {
		must(n.t, n.End(claim))
	}
	for _, name := range n.taken {
		must(n.t, n.Machine.GiveName(name))
	}
	n.sealed, n.taken = nil, nil
}

func (n *node) failNICs() {
	calls := []string{simulator.CallNICHome, simulator.CallBringHome, simulator.CallMoveNIC}
	kinds := []simulator.FailureKind{simulator.FailureUnknown, simulator.FailureInUse, simulator.FailureInsufficientResources}
	for _, nic := range n.published.NICs {
		if n.IntN(2) == 0 {
			kind, call := kinds[n.IntN(len(kinds))], calls[n.IntN(len(calls))]
			n.note("%s of %s fails: %s", call, nic.Name(), kind)
			must(n.t, n.Machine.Fail(nic.Address.String(), call, simulator.Failure{Times: 1 + n.IntN(2), Error: kind}))
		}
	}
}
