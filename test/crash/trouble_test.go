package crash

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// trouble is what a round has.
type trouble struct {
	name string
	// byHand: what somebody else made has changed, so that a claim may have to go.
	byHand bool
	// over: what the kubelet asks for must succeed again, but for what is byHand.
	over bool
}

// tolerant says that calls may fail.
func (n *node) tolerant() bool { return n.trouble != nil && !n.trouble.over }

// changedByHand says that a claim may not be had any more.
func (n *node) changedByHand() bool { return n.trouble != nil && n.trouble.byHand }

// begin makes trouble.
func (n *node) begin() {
	n.troubles++
	all := []struct {
		name string
		make func()
		// changes: the machine is another one then.
		changes bool
	}{
		{"calls fail", n.failCalls, false},
		{"holders", n.hold, false},
		{"dovetail-mps away", n.leaveShares, false},
		{"a NIC's name taken", n.takeName, false},
		{"namespaces that do not end", n.seal, false},
		{"GPU lost", n.lose, true},
		{"driver loaded anew", n.reload, true},
		{"reboot", n.reboot, true},
		{"partition made by hand", n.makePartition, true},
		{"partition destroyed by hand", n.destroyPartition, true},
		{"MIG mode switched by hand", n.switchMode, true},
	}
	picked := all[n.IntN(len(all))]
	n.note("trouble: %s", picked.name)
	n.trouble = &trouble{name: picked.name, byHand: n.byHand()}
	n.stale = picked.changes
	picked.make()
	if picked.changes && n.IntN(2) == 0 {
		n.publish()
	}
}

// byHand says whether the machine has something that was made by hand, which goes with
// the driver, or comes with the boot.
func (n *node) byHand() bool {
	state, err := n.Machine.State()
	must(n.t, err)
	return slices.ContainsFunc(state.Spec.GPUs, func(g simulator.GPUSpec) bool { return len(g.Partitions) > 0 }) ||
		slices.ContainsFunc(n.published.GPUs, func(g machine.GPU) bool {
			return len(g.MIG.Instances) > 0 || g.MIG.Enabled && g.MIG.OnDemand
		})
}

// end ends it.
func (n *node) end() {
	if n.trouble == nil {
		return
	}
	n.trouble.over = true
	letGo(n.holds...)
	n.holds = nil
	if n.Sharing == (away{}) {
		n.Sharing = n.Machine.Sharing()
		n.restart()
	}
	var lost []string
	must(n.t, n.Machine.Update(func(s *simulator.State) error {
		for i := range s.GPUs {
			s.GPUs[i].Failures = nil
			if s.GPUs[i].Has(simulator.FaultLost) {
				lost = append(lost, s.Spec.GPUs[i].UUID)
			}
		}
		for i := range s.NICs {
			s.NICs[i].Failures = nil
		}
		return nil
	}))
	n.endNICs()
	for _, gpu := range lost {
		// What brings it back also resets it.
		must(n.t, errors.Join(n.Machine.Restore(gpu, simulator.FaultLost), n.Machine.SetComputeMode(gpu, machine.ComputeModeDefault),
			n.Machine.SetTimeSlice(gpu, machine.TimeSliceDefault)))
		must(n.t, n.Settle(n.t.Context(), gpu))
		n.stale = true
	}
}

// fallible calls.
var fallible = []string{
	simulator.CallSetMIGMode, simulator.CallMakeGPUInstance, simulator.CallMakeComputeInstance,
	simulator.CallDestroyComputeInstance, simulator.CallDestroyGPUInstance,
	"nvmlDeviceGetGpuInstances", "nvmlDeviceGetComputeMode", "nvmlDeviceSetComputeMode",
	simulator.CallStartMPS, simulator.CallStopMPS, simulator.CallMakeNamespace, simulator.CallRemoveNamespace,
	simulator.CallTimeSlice, simulator.CallSetTimeSlice,
}

func (n *node) failCalls() {
	if n.IntN(3) == 0 {
		n.failNICs()
	}
	kinds := slices.DeleteFunc(simulator.FailureKinds(), func(k simulator.FailureKind) bool {
		return k == simulator.FailureNoPermission // an agent has its permissions as long as it runs
	})
	for range 1 + n.IntN(4) {
		kind, call := kinds[n.IntN(len(kinds))], fallible[n.IntN(len(fallible))]
		if kind == simulator.FailureLost {
			if call == simulator.CallStopMPS || call == simulator.CallRemoveNamespace {
				continue // who ends a control daemon asks no GPU
			}
			n.stale = true // it comes without notice
		}
		n.note("%s fails: %s", call, kind)
		must(n.t, n.Machine.Fail(n.gpu(), call, simulator.Failure{Times: 1 + n.IntN(2), Error: kind}))
	}
}

func (n *node) gpu() string {
	all := n.gpus()
	return all[n.IntN(len(all))]
}

// hold opens GPUs and partitions, as monitors do.
func (n *node) hold() {
	now, err := n.Describe(n.t.Context())
	must(n.t, err)
	for _, gpu := range now.GPUs {
		for _, in := range gpu.MIG.Instances {
			if n.IntN(3) == 0 {
				n.holds = append(n.holds, n.held(gpu.UUID, in.ID))
			}
		}
		if n.IntN(4) == 0 {
			n.holds = append(n.holds, n.held(gpu.UUID))
		}
	}
}

func (n *node) held(gpu string, instance ...int) *simulator.Hold {
	n.note("%s %v is held", gpu, instance)
	h, err := n.Machine.Hold(gpu, instance...)
	must(n.t, err)
	return h
}

// leaveShares to nobody.
func (n *node) leaveShares() {
	n.Sharing = away{}
	n.restart()
}

func (n *node) lose() {
	gpu := n.gpu()
	n.note("lost: %s", gpu)
	must(n.t, n.Machine.Inject(gpu, simulator.FaultLost))
}

// reload: while there is no driver the kubelet asks, too.
func (n *node) reload() {
	must(n.t, n.Machine.SetDriver(simulator.DriverUnloaded))
	for range n.IntN(3) {
		if len(n.pods) > 0 {
			n.depart(n.pods[n.IntN(len(n.pods))])
		}
	}
	must(n.t, n.Machine.SetDriver(simulator.DriverLoaded))
	must(n.t, n.Settle(n.t.Context()))
	n.restart()
}

func (n *node) reboot() {
	must(n.t, errors.Join(n.Machine.Reboot(), os.RemoveAll(filepath.Join(n.Dir, "cdi"))))
	must(n.t, n.Settle(n.t.Context()))
	n.restart()
}

// changed: a GPU was changed by hand, so that claims that are not prepared yet, or that
// have what was destroyed, may have to go.
func (n *node) changed(gpu, how string, err error) {
	n.note("%s: %s: %v", gpu, how, err)
	n.trouble.byHand = true
	must(n.t, n.Settle(n.t.Context(), gpu))
}

func (n *node) makePartition() {
	gpu := n.gpu()
	_, err := n.Machine.MakePartition(gpu, n.profile().Name, nil) // where there is room
	n.changed(gpu, "partition made", err)
}

// destroyPartition destroys one that no claim has made.
func (n *node) destroyPartition() {
	for _, gpu := range n.published.GPUs {
		for _, in := range gpu.MIG.Instances {
			if n.IntN(3) == 0 {
				n.changed(gpu.UUID, "partition destroyed", n.Machine.DestroyPartition(gpu.UUID, in.ID))
				return
			}
		}
	}
}

// switchMode of a GPU that no claim has.
func (n *node) switchMode() {
	gpu := n.published.GPUs[n.IntN(len(n.published.GPUs))]
	for _, name := range n.scheduler.Allocated(claimtest.Pool) {
		if d, known := n.published.Device(name); !known || d.GPU != nil && d.GPU.UUID == gpu.UUID {
			return
		}
	}
	err := n.Machine.SetMIGMode(gpu.UUID, !gpu.MIG.Enabled)
	if err == nil && !gpu.MIG.OnDemand {
		err = n.Machine.Reset(gpu.UUID)
	}
	n.changed(gpu.UUID, "mode switched", err)
}
