package crash

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failpoint"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// hardware that a claim has.
type hardware struct {
	machine    string
	byHand     func(*simulator.Machine) error // before the claim comes; may be nil
	parameters string
	devices    []string
	shares     []claimtest.Share
	// beside is what claim b has of it, with the same parameters; it is prepared before.
	beside []claimtest.Share
}

const (
	long  = `{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig","sharing":{"timeSlicing":{"interval":"Long"}}}`
	byMPS = `{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig","sharing":{"strategy":"MPS"}}`

	pairExclusive = `{"apiVersion":"dovetail.dev/v1alpha1","kind":"PairConfig","gpu":{"computeMode":"ExclusiveProcess"}}`
	renamed       = `{"apiVersion":"dovetail.dev/v1alpha1","kind":"NICConfig","interfaceName":"net1","mtu":1500}`
	nicName       = "nic-18-00"
	pairName      = "pair-43-00-40-00"
)

// share of a quarter of a device.
func share(request, device, id string) claimtest.Share {
	return claimtest.Share{Request: request, Device: device, ID: id, Memory: "20Gi", Compute: 25}
}

var hardwares = map[string]hardware{
	"two GPUs":              {machine: "dgx-h100", parameters: claimtest.Exclusive, devices: []string{"gpu-1b-00", "gpu-43-00"}},
	"one partition":         {machine: "dgx-h100", devices: []string{"mig-1b-00-1g10gb-4"}},
	"two of a GPU":          {machine: "dgx-h100", devices: []string{"mig-1b-00-3g40gb-4", "mig-1b-00-1g10gb-0"}},
	"of two GPUs":           {machine: "dgx-h100", devices: []string{"mig-1b-00-1g10gb-4", "mig-43-00-7g80gb-0"}},
	"mode by hand":          {machine: "dgx-h100", byHand: modeOn, devices: []string{"mig-1b-00-1g10gb-4"}},
	"beside a static":       {machine: "static-mig", devices: []string{"mig-1b-00-2g20gb-0"}},
	"a static and one made": {machine: "static-mig", devices: []string{"mig-1b-00-3g40gb-4", "mig-1b-00-1g10gb-1"}},
	"a share":               {machine: "dgx-h100", shares: []claimtest.Share{share("r", "mps-1b-00", "1")}},
	"a further share":       {machine: "dgx-h100", shares: []claimtest.Share{share("r", "mps-1b-00", "1")}, beside: []claimtest.Share{share("r", "mps-1b-00", "2")}},
	"namespaces": {machine: "mps-v3", shares: []claimtest.Share{
		share("r", "mps-9d-00", "1"), share("s", "mps-1b-00", "2"), share("r", "mps-1b-00", "3"),
	}},
	"a further namespace":    {machine: "mps-v3", shares: []claimtest.Share{share("r", "mps-1b-00", "1")}, beside: []claimtest.Share{share("r", "mps-1b-00", "2")}},
	"a time slice":           {machine: "dgx-h100", parameters: long, shares: []claimtest.Share{share("r", "timeslice-1b-00", "1")}},
	"a further time slice":   {machine: "dgx-h100", parameters: long, shares: []claimtest.Share{share("r", "timeslice-1b-00", "1")}, beside: []claimtest.Share{share("r", "timeslice-1b-00", "2")}},
	"shared by its claim":    {machine: "dgx-h100", parameters: byMPS, devices: []string{"mig-1b-00-1g10gb-4", "gpu-43-00"}},
	"a partition shared":     {machine: "dgx-h100", parameters: byMPS, devices: []string{"mig-1b-00-1g10gb-4"}},
	"a NIC":                  {machine: "dgx-h100", parameters: renamed, devices: []string{nicName}},
	"a pair":                 {machine: "dgx-h100", parameters: pairExclusive, devices: []string{pairName}},
	"two VFs":                {machine: "sriov", devices: []string{"vf-18-00-3", "vf-18-00-2"}},
	"a pair with a VF":       {machine: "sriov", devices: []string{"pair-1b-00-18-00"}},
	"a pair and a partition": {machine: "dgx-h100", devices: []string{"mig-1b-00-1g10gb-4", pairName}},
	"Ampere":                 {machine: "a30", byHand: modeOn, devices: []string{"mig-17-00-1g6gb-0", "mig-17-00-2g12gb-2"}},
}

// modeOn is what an administrator does. Not all GPUs need the reset.
func modeOn(m *simulator.Machine) error {
	return errors.Join(m.SetMIGMode("0", true), m.Reset("0"))
}

// way is a call in the middle of which a process is killed, and what came before.
type way struct {
	call     string
	prepared bool                                       // the claim was prepared before
	only     func(h hardware) bool                      // nil: whatever the claim has
	trouble  func(w *claimtest.World, h hardware) error // before the call; may be nil
	fails    bool                                       // so does the call, unless it is killed
	cure     func(*simulator.Machine) error             // of the trouble, before the next agent; may be nil
	places   []string                                   // that it must pass
}

var (
	making  = []string{failpoint.JournalTemporary, failpoint.JournalWritten, failpoint.StepDone, failpoint.OutcomeWritten}
	telling = []string{failpoint.CDITemporary, failpoint.CDIWritten}
	undoing = []string{failpoint.CDIRemoved, failpoint.StepUndone, failpoint.JournalRemoved}

	ways = map[string]way{
		prepare:                  {call: prepare, places: slices.Concat(making, telling)},
		release:                  {call: release, prepared: true, places: slices.Concat(undoing, []string{failpoint.ReleaseWritten})},
		"repair":                 {call: prepare, prepared: true, trouble: reload, places: slices.Concat(making[2:3], telling)},
		"repair with other IDs":  {call: prepare, prepared: true, only: isOnePartition, trouble: renumber, places: slices.Concat(making[2:], telling)},
		"release from the Pod":   {call: release, prepared: true, only: hasNIC, trouble: start, places: undoing},
		"release after the Pod":  {call: release, prepared: true, only: hasNIC, trouble: startAndEnd, places: undoing},
		"repair under the Pod":   {call: prepare, prepared: true, only: hasNIC, trouble: startAndWipe, places: slices.Concat(making[2:3], telling)},
		"roll back a pair":       rollBack(hasPair, "nvmlDeviceSetComputeMode", simulator.FailureUnknown, slices.Concat(making[:2], undoing)),
		"roll back":              rollBack(hasPartitions, simulator.CallMakeComputeInstance, simulator.FailureUnknown, slices.Concat(making, undoing)),
		"roll back a share":      rollBack(hasMPS, simulator.CallStartMPS, simulator.FailureUnknown, slices.Concat(making, undoing)),
		"share refused":          rollBack(hasMPS, simulator.CallStartMPS, simulator.FailureInsufficientResources, slices.Concat(making, undoing)),
		"roll back a namespace":  rollBack(hasNamespaces, simulator.CallMakeNamespace, simulator.FailureUnknown, slices.Concat(making, undoing)),
		"roll back a time slice": rollBack(hasTimeSlice, simulator.CallSetTimeSlice, simulator.FailureUnknown, slices.Concat(making[:2], undoing)),
		"refused":                rollBack(hasPartitions, simulator.CallMakeGPUInstance, simulator.FailureInsufficientResources, slices.Concat(making[:2], undoing[:1], undoing[2:])),
		"GPU lost":               rollBack(isOnePartition, simulator.CallMakeComputeInstance, simulator.FailureLost, slices.Concat(making, undoing)),
	}
)

// last device of the claim.
func (h hardware) last() string {
	if len(h.shares) > 0 {
		return h.shares[len(h.shares)-1].Device
	}
	return h.devices[len(h.devices)-1]
}

func hasPartitions(h hardware) bool { return strings.HasPrefix(h.last(), "mig-") }

func isOnePartition(h hardware) bool {
	return hasPartitions(h) && h.machine == "dgx-h100" && h.byHand == nil && len(h.devices) == 1
}

func hasMPS(h hardware) bool { return h.parameters == byMPS || strings.HasPrefix(h.last(), "mps-") }

func hasNamespaces(h hardware) bool { return h.machine == "mps-v3" }

func hasNIC(h hardware) bool {
	return strings.HasPrefix(h.last(), "nic-") || strings.HasPrefix(h.last(), "pair-") || strings.HasPrefix(h.last(), "vf-")
}

// onlyNICs: no step has an outcome of its own, since a NIC is reserved by being on record.
func onlyNICs(h hardware) bool { return hasNIC(h) && !hasPair(h) }

func hasPair(h hardware) bool { return h.parameters == pairExclusive }

// start runs the claim's container, which takes the NICs into its Pod.
func start(w *claimtest.World, _ hardware) error { return w.Start("a") }

func startAndEnd(w *claimtest.World, _ hardware) error { return errors.Join(w.Start("a"), w.End("a")) }

func startAndWipe(w *claimtest.World, _ hardware) error {
	return errors.Join(w.Start("a"), os.RemoveAll(filepath.Join(w.Dir, "cdi")))
}

func hasTimeSlice(h hardware) bool { return h.parameters == long }

// reload loads the driver anew, which loses partitions and modes, and the CDI
// directory is wiped. The administrator's script then makes those partitions again
// that the machine has from boot on.
func reload(w *claimtest.World, _ hardware) error {
	err := errors.Join(w.Machine.SetDriver(simulator.DriverUnloaded), w.Machine.SetDriver(simulator.DriverLoaded),
		os.RemoveAll(filepath.Join(w.Dir, "cdi")))
	state, unread := w.Machine.State()
	if unread != nil {
		return unread
	}
	for _, gpu := range state.Spec.GPUs {
		for _, p := range gpu.Partitions {
			_, failed := w.Machine.MakePartition(gpu.UUID, p.Profile, &p.Start)
			err = errors.Join(err, failed)
		}
	}
	return errors.Join(err, w.Settle(context.Background()))
}

// renumber loads the driver anew, and then a partition is made by hand that gets the
// ID that the claim's one had.
func renumber(w *claimtest.World, h hardware) error {
	if err := errors.Join(reload(w, h), modeOn(w.Machine)); err != nil {
		return err
	}
	_, err := w.Machine.MakePartition("0", "1g.10gb", new(int))
	return errors.Join(err, w.Settle(context.Background()))
}

// rollBack is a call of the last device's GPU that fails once.
func rollBack(only func(hardware) bool, nvml string, kind simulator.FailureKind, places []string) way {
	return way{
		call: prepare, only: only, fails: true, places: places,
		trouble: func(w *claimtest.World, h hardware) error {
			now, err := w.Describe(context.Background())
			if err != nil {
				return err
			}
			last, _ := now.Device(h.last())
			// An agent that starts makes the call for the claim beside, too.
			return w.Machine.Fail(last.GPU.UUID, nvml, simulator.Failure{Times: 1 + len(h.beside), Error: kind})
		},
		cure: func(m *simulator.Machine) error {
			state, err := m.State()
			if err != nil {
				return err
			}
			for _, gpu := range state.Spec.GPUs {
				err = errors.Join(err, m.Restore(gpu.UUID, simulator.FaultLost), m.Fail(gpu.UUID, nvml, simulator.Failure{Error: kind}))
			}
			return err
		},
	}
}

func TestEveryPlaceIsOnSomeWay(t *testing.T) {
	var all []string
	for _, w := range ways {
		all = append(all, w.places...)
	}
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	if want := slices.Sorted(slices.Values(failpoint.All)); !slices.Equal(all, want) {
		t.Errorf("must pass %q, there are %q", all, want)
	}
}
