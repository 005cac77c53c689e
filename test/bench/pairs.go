package main

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/sched"
)

// pairDecisions are claims of GPUs with NICs: as pairs, and apart.
func pairDecisions() []decision {
	pairs := func(count int64) *resourceapi.ResourceClaim {
		return sched.Claim("c", sched.Several(count, sched.Request("p", machine.KindPair)))
	}
	nic := []*resourceapi.ResourceClaim{sched.Claim("nic", sched.Request("n", machine.KindNIC))}
	half := []*resourceapi.ResourceClaim{sched.Claim("half", sched.Several(gpus/2, sched.Request("p", machine.KindPair)))}
	return []decision{
		{what: "1 pair", claim: pairs(1), fits: true},
		{what: "1 GPU and 1 NIC, apart", claim: apart(1), fits: true},
		{what: "4 pairs, 4 pairs out", out: half, claim: pairs(gpus / 2), fits: true},
		{what: "4 GPUs and 4 NICs, apart, 4 pairs out", out: half, claim: apart(gpus / 2), fits: true},
		{what: "8 pairs", claim: pairs(gpus), fits: true},
		{what: "8 GPUs and 8 NICs, apart", claim: apart(gpus), fits: true},
		{what: "9 pairs", claim: pairs(gpus + 1)},
		{what: "9 GPUs and 9 NICs, apart", claim: apart(gpus + 1)},
		{what: "8 pairs, one NIC out", out: nic, claim: pairs(gpus)},
		{what: "8 GPUs and 8 NICs, apart, one NIC out", out: nic, claim: apart(gpus)},
	}
}

// apart asks for GPUs, each followed by the NIC that is to be on its root: in this order
// the allocator finds out soonest that there is none.
func apart(n int) *resourceapi.ResourceClaim {
	root := resourceapi.FullyQualifiedName("resource.kubernetes.io/pcieRoot")
	claim := sched.Claim("c")
	devices := &claim.Spec.Devices
	for i := range n {
		gpu, nic := fmt.Sprint("gpu-", i), fmt.Sprint("nic-", i)
		devices.Requests = append(devices.Requests, sched.Request(gpu, machine.KindGPU), sched.Request(nic, machine.KindNIC))
		devices.Constraints = append(devices.Constraints, resourceapi.DeviceConstraint{Requests: []string{gpu, nic}, MatchAttribute: &root})
	}
	return claim
}
