package claim_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// Profile IDs and calls of the H100s of the tests.
const (
	oneSlice       = 19
	threeSlices    = 9
	createGPU      = "nvmlDeviceCreateGpuInstance"
	createCompute  = "nvmlGpuInstanceCreateComputeInstance"
	destroyGPU     = "nvmlGpuInstanceDestroy"
	destroyCompute = "nvmlComputeInstanceDestroy"
	setMode        = "nvmlDeviceSetMigMode"
)

func (w *world) mig(gpu int) machine.MIG {
	w.t.Helper()
	now, err := w.Describe(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return now.GPUs[gpu].MIG
}

// byHand makes a partition as other tools do.
func (w *world) byHand(profile string, start int) machine.GPUInstance {
	w.t.Helper()
	made, err := w.Machine.MakePartition("0", profile, &start)
	w.must(err)
	return made
}

func TestPartitionIsMadeAndTakenApart(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", "", "mig-1b-00-1g10gb-4")
	devices := w.prepare(c)
	w.check("a")
	mig := w.mig(0)
	if len(mig.Instances) != 1 || mig.Instances[0].ProfileID != oneSlice || mig.Instances[0].Placement != (machine.Placement{Start: 4, Size: 1}) {
		t.Fatalf("instances %+v", mig.Instances)
	}
	if uuid := mig.Instances[0].ComputeInstances[0].UUID; len(devices) != 1 || devices[0].UUID != uuid || !strings.HasPrefix(uuid, "MIG-") {
		t.Errorf("devices %+v, MIG UUID %q", devices, uuid)
	}
	if again := w.prepare(c); !reflect.DeepEqual(again, devices) {
		t.Errorf("asked again: %+v, at first %+v", again, devices)
	}
	w.check("a")
	w.unprepare(c)
	w.check()
}

// The runtime is told of a partition by its GPU's minor number.
func TestPartitionIsDescribedByMinor(t *testing.T) {
	w := newWorld(t)
	w.prepare(w.allocate("a", "", "mig-43-00-1g10gb-4"))
	content, err := os.ReadFile(w.specification("a"))
	w.must(err)
	if want := fmt.Sprintf("/gpu%d/gi", w.m.Machine().GPUs[1].Minor); !strings.Contains(string(content), want) {
		t.Errorf("no %s in %s", want, content)
	}
}

func TestSevenPartitionsOfOneGPUAtOnce(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	var names []string
	for i := range 7 {
		name := fmt.Sprint("c", i)
		names = append(names, name)
		c := w.allocate(name, "", fmt.Sprint("mig-1b-00-1g10gb-", i))
		all.Go(func() {
			if _, err := w.m.Prepare(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	w.check(names...)
	for i, name := range names { // the last switches MIG mode off
		w.check(names[i:]...)
		c, err := w.Allocate(name, "", fmt.Sprint("mig-1b-00-1g10gb-", i))
		w.must(err)
		w.unprepare(c)
	}
	w.check()
}

func TestOneClaimOverSeveralPartitions(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", "", "mig-1b-00-3g40gb-4", "mig-1b-00-4g40gb-0", "mig-43-00-7g80gb-0", "gpu-52-00")
	if devices := w.prepare(c); len(devices) != 4 || devices[0].UUID == devices[1].UUID {
		t.Errorf("devices %+v", devices)
	}
	w.check("a")
	w.unprepare(c)
	w.check()
}

// What is published must not change while claims come and go.
func TestUnclaimedMachineStaysAsItIs(t *testing.T) {
	w := newWorld(t)
	w.must(w.Machine.SetMIGMode("1", true)) // by hand
	w.restart()
	before := *w.m.Machine()
	c := w.allocate("a", "", "mig-1b-00-1g10gb-4", "mig-43-00-1g10gb-6")
	for _, change := range []func(){func() { w.prepare(c) }, func() { w.restart() }, func() { w.unprepare(c) }} {
		change()
		w.look()
		if now := w.m.Machine(); !now.Equal(&before) {
			t.Fatalf("the machine is described as\n%+v, at first\n%+v", now.GPUs[:2], before.GPUs[:2])
		}
	}
	if !w.mig(1).Enabled {
		t.Error("MIG mode that was switched on by hand was switched off")
	}
}

// What a whole GPU lacks is said of it while it is in MIG mode for a claim, too.
func TestPartitionsDoNotTakeTheDriversLimits(t *testing.T) {
	w := newWorldOf(t, "mps-v3")
	w.must(w.Machine.Inject("0", simulator.FaultNoMemoryLimits))
	w.look()
	before := *w.m.Machine()
	c := w.prepared("a", "", "mig-"+before.GPUs[0].Address.Label()+"-1g10gb-4")
	if described, err := w.Describe(t.Context()); err != nil || !described.GPUs[0].LimitsCgroups {
		t.Fatalf("in MIG mode it is asked: %v", err)
	}
	w.look()
	if now := w.m.Machine(); !now.Equal(&before) || now.GPUs[0].LimitsCgroups {
		t.Errorf("the machine is described as\n%+v, at first\n%+v", now.GPUs[0], before.GPUs[0])
	}
	w.restart() // which has not seen it otherwise
	w.look()
	w.unprepare(c)
	w.look()
	if now := w.m.Machine(); !now.Equal(&before) {
		t.Errorf("afterwards it is described as\n%+v, at first\n%+v", now.GPUs[0], before.GPUs[0])
	}
}

// A placement that somebody takes is refused, with who has it; theirs stays.
func TestPlacementTakenByHand(t *testing.T) {
	w := newWorld(t)
	w.must(w.Machine.SetMIGMode("0", true))
	made := w.byHand("3g.40gb", 4)
	w.must(w.Settle(t.Context()))
	for _, device := range []string{"mig-1b-00-1g10gb-4", "mig-1b-00-3g40gb-4", "mig-1b-00-7g80gb-0"} {
		w.refused(w.allocate("a", "", device), failure.Conflict, "units 4 to 7", fmt.Sprintf("GPU instance %d (3g.40gb)", made.ID), "by hand")
		w.check()
	}
	w.refused(w.allocate("a", "", "gpu-1b-00"), failure.Conflict, "switched to MIG mode by hand")
	w.prepare(w.allocate("b", "", "mig-1b-00-4g40gb-0")) // there is room for this one
	w.check("b")
}

// thief makes a partition of its own just before ours is made.
type thief struct {
	hardware.GPUs
	steal func()
}

func (g thief) MakeGPUInstance(ctx context.Context, uuid string, profileID int, at machine.Placement) (int, error) {
	g.steal()
	return g.GPUs.MakeGPUInstance(ctx, uuid, profileID, at)
}

// Even one that is just like ours is not ours.
func TestPlacementTakenAtTheVeryLastMoment(t *testing.T) {
	w := newWorld(t)
	w.GPUs = thief{w.GPUs, func() { w.byHand("1g.10gb", 4) }}
	w.restart()
	w.refused(w.allocate("a", "", "mig-1b-00-1g10gb-4"), failure.Conflict)
	if left := w.mig(0); len(left.Instances) != 1 || len(left.Instances[0].ComputeInstances) != 1 {
		t.Errorf("what was made by hand is now %+v", left.Instances)
	}
	if records, err := w.m.Records(); err != nil || len(records) != 1 || records[0].Entry.Claim.Name != "mig-mode of gpu-1b-00" {
		t.Errorf("on record: %+v, %v", records, err)
	}
}

func TestStaticPartition(t *testing.T) {
	w := newWorldOf(t, "static-mig")
	before := w.mig(0).Instances
	c := w.allocate("a", "", "mig-1b-00-3g40gb-4", "mig-1b-00-1g10gb-0")
	devices := w.prepare(c)
	if uuid := before[1].ComputeInstances[0].UUID; devices[0].UUID != uuid {
		t.Errorf("prepared %s, want %s", devices[0].UUID, uuid)
	}
	w.check("a")
	w.restart()
	w.check("a")
	w.unprepare(c)
	w.check()

	gone := w.prepared("b", "", "mig-1b-00-3g40gb-4")
	w.must(w.Machine.DestroyPartition("0", before[1].ID))
	w.must(w.Settle(t.Context()))
	w.refused(gone, failure.Conflict, "destroyed or changed by hand")
	w.look()
	w.prepare(gone) // the device of that name is now one that is made
	w.check("b")
	w.unprepare(gone)
	w.check()
}

// While the agent is upgraded two of them serve the kubelet: they work on one GPU, and
// on one claim, as one does.
func TestTwoAgentsOnOneGPU(t *testing.T) {
	w := newWorld(t)
	w.Crowded = true
	w.restart()
	other, err := claimtest.Open(w.Dir)
	w.must(err)
	other.Crowded = true
	second, _, err := other.Manager(t.Context())
	w.must(err)

	var all sync.WaitGroup
	var names []string
	var claims []*resourceapi.ResourceClaim
	for i := range 7 {
		c := w.allocate(fmt.Sprint("c", i), "", fmt.Sprint("mig-1b-00-1g10gb-", i))
		names, claims = append(names, c.Name), append(claims, c)
	}
	both := func(do func(m *claim.Manager, c *resourceapi.ResourceClaim) error) {
		for _, c := range claims {
			for _, m := range []*claim.Manager{w.m, second} {
				all.Go(func() {
					if err := do(m, c); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
	}
	both(func(m *claim.Manager, c *resourceapi.ResourceClaim) error {
		_, err := m.Prepare(t.Context(), c)
		return err
	})
	w.check(names...)
	both(func(m *claim.Manager, c *resourceapi.ResourceClaim) error {
		return m.Unprepare(t.Context(), claimtest.Reference(c))
	})
	w.check()
}
