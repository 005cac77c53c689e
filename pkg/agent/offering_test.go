package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/classwatch"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

const (
	third = "third: {shape: {mig: {profile: 3g.40gb}}}"
	small = "small: {shape: {mps: {memory: 10Gi}}}"

	firstHalf, secondHalf = "mig-1b-00-3g40gb-0", "mig-1b-00-3g40gb-4"
	seventh               = "mig-1b-00-1g10gb-4"
)

// Changes that come together are decided on together. What is no longer asked for is
// kept from new claims at once, and goes a little later.
func TestClassesDecide(t *testing.T) {
	inBubble(t, func(t *testing.T, m machine.Machine, others []string) {
		d := decide(t, m, nil)
		if d.after(time.Hour); d.times != 0 {
			t.Error("something is published before it is known what is to be")
		}
		d.classes()
		d.after(gatherDelay, with(others, firstHalf, secondHalf)...)
		d.classes(third)
		d.after(gatherDelay/2, with(others, firstHalf, secondHalf)...)
		d.classes(third, small)
		d.after(gatherDelay/2, with(leaving(others...), firstHalf, secondHalf, "mps-1b-00-small")...)
		if d.times != 2 {
			t.Errorf("published %d times", d.times)
		}
		if sharing, _ := d.Sharing(); len(sharing.Sizes) != 1 || sharing.Sizes[0].Name != "small" {
			t.Errorf("sharing: %+v", sharing)
		}
		d.after(leaveDelay-gatherDelay, with(leaving(others...), firstHalf, secondHalf, "mps-1b-00-small")...)
		d.after(keptInterval, firstHalf, secondHalf, "mps-1b-00-small")
		times := d.times
		d.after(time.Hour, firstHalf, secondHalf, "mps-1b-00-small")
		if d.times != times {
			t.Errorf("published %d times while nothing happened", d.times-times)
		}
		d.classes(third)
		d.after(gatherDelay, firstHalf, secondHalf, "-mps-1b-00-small")
		d.classes(third, small) // it comes back in time
		d.after(leaveDelay+keptInterval, firstHalf, secondHalf, "mps-1b-00-small")
		d.classes()
		d.after(gatherDelay, with(others, firstHalf, secondHalf, "-mps-1b-00-small")...)
		d.after(leaveDelay+keptInterval, with(others, firstHalf, secondHalf)...)
		if want := []int{0, 2, 1, 2, 0}; !slices.Equal(d.recorded, want) {
			t.Errorf("recorded: %v classes, want %v", d.recorded, want)
		}
	})
}

// A class of which the node cannot publish all is told of once, and again when it has
// been right meanwhile.
func TestClassesUnoffered(t *testing.T) {
	inBubble(t, func(t *testing.T, m machine.Machine, _ []string) {
		m.Sharing.Sizes = []machine.Size{{Name: "taken", Kind: machine.KindMPS, Memory: 1 << 30}}
		const taken = "taken: {shape: {mps: {memory: 2Gi}}}"
		d := decide(t, m, nil)
		for _, classes := range [][]string{{taken}, {taken, third}, {third}, {taken}} {
			d.classes(classes...)
			<-time.After(2 * gatherDelay)
			synctest.Wait()
		}
		if want := []string{"taken", "taken"}; !slices.Equal(d.without, want) {
			t.Errorf("told of %v, want %v", d.without, want)
		}
	})
}

// What a claim has is published until it is released, whatever classes there are.
func TestAllocatedDevicesStay(t *testing.T) {
	inBubble(t, func(t *testing.T, m machine.Machine, _ []string) {
		d := decide(t, m, nil)
		d.has(seventh, "mps-1b-00-small")
		d.classes(third) // as after a restart
		d.after(gatherDelay, firstHalf, secondHalf, "-"+seventh, "-mps-1b-00-small")
		d.after(time.Hour, firstHalf, secondHalf, "-"+seventh, "-mps-1b-00-small")
		d.has("mps-1b-00-small")
		d.Released()
		d.after(gatherDelay, firstHalf, secondHalf, "-mps-1b-00-small")
		d.has() // released by another agent
		d.after(keptInterval, firstHalf, secondHalf)
	})
}

// What is left of a pair whose GPU is gone stays, tainted, until its claim is released.
func TestPairWithoutItsGPU(t *testing.T) {
	m := simulatortest.Describe(t, "dgx-h100") // real time passes here
	synctest.Test(t, func(t *testing.T) {
		pair, _ := m.Device("pair-1b-00-18-00")
		now := m
		now.GPUs = m.GPUs[1:]
		d := decide(t, m, &classwatch.Known{})
		d.holds(machine.Held{Name: pair.Name, Kind: pair.Kind, GPU: pair.GPU.UUID, Function: pair.NIC.Address, Alone: true})
		taints := func() int {
			d.mu.Lock()
			defer d.mu.Unlock()
			i := slices.IndexFunc(d.published.Devices, func(device resourceapi.Device) bool { return device.Name == pair.Name })
			if i < 0 {
				return -1
			}
			return len(d.published.Devices[i].Taints)
		}
		step := func(want int, what func()) {
			t.Helper()
			what()
			<-time.After(gatherDelay)
			synctest.Wait()
			if got := taints(); got != want {
				t.Errorf("it has %d taints, want %d", got, want)
			}
		}
		step(0, d.Ask)
		step(2, func() { d.Machine(t.Context(), &now) })
		step(2, func() { <-time.After(time.Hour) })
		step(-1, func() {
			d.holds()
			d.Released()
		})
	})
}

// What stays for claims since the machine has changed is looked through from time to time:
// another agent may have released it.
func TestReleasedElsewhere(t *testing.T) {
	m := simulatortest.Describe(t, "dgx-h100")
	synctest.Test(t, func(t *testing.T) {
		pair, _ := m.Device("pair-1b-00-18-00")
		d := decide(t, m, &classwatch.Known{})
		d.holds(machine.Held{Name: pair.Name, Kind: pair.Kind, GPU: pair.GPU.UUID, Function: pair.NIC.Address, Alone: true})
		now := m
		now.GPUs = m.GPUs[1:]
		d.Machine(t.Context(), &now)
		<-time.After(gatherDelay)
		if len(d.remnants()) != 1 {
			t.Errorf("remnants: %q", d.remnants())
		}
		d.holds()
		<-time.After(keptInterval + gatherDelay)
		synctest.Wait()
		if len(d.remnants()) != 0 {
			t.Errorf("remnants of a claim that is gone: %q", d.remnants())
		}
	})
}

// A claim that was prepared while the machine changed is known at once.
func TestPreparedMeanwhile(t *testing.T) {
	m := simulatortest.Describe(t, "dgx-h100")
	synctest.Test(t, func(t *testing.T) {
		nic, _ := m.Device("nic-18-00")
		d := decide(t, m, &classwatch.Known{})
		before := &m
		step := func(what string, want int, do func()) {
			t.Helper()
			times := d.times
			do()
			<-time.After(gatherDelay)
			synctest.Wait()
			if d.times != times+want {
				t.Errorf("%s: it was decided %d times, want %d", what, d.times-times, want)
			}
		}
		step("the machine is as before", 0, func() { d.Prepared([]string{nic.Name}, d.machine) })
		now := m
		now.NICs = slices.Clone(m.NICs)
		now.NICs[0].Health = machine.Health{Reason: machine.FaultLinkDown}
		step("the machine has changed", 1, func() { d.Machine(t.Context(), &now) })
		step("the machine had changed", 1, func() { d.Prepared([]string{nic.Name}, before) })
	})
}

// A claim that was given a device which is gone by now brings it back.
func TestClaimOfADeviceThatWent(t *testing.T) {
	inBubble(t, func(t *testing.T, m machine.Machine, _ []string) {
		d := decide(t, m, nil)
		d.classes(third)
		d.after(gatherDelay, firstHalf, secondHalf)
		d.Claimed([]string{seventh, firstHalf})
		d.after(gatherDelay, firstHalf, secondHalf, "-"+seventh)
		d.has(seventh)
		d.after(time.Hour, firstHalf, secondHalf, "-"+seventh)
		d.has()
		d.Claimed([]string{"mps-1b-00-small"}) // and cannot be prepared yet
		d.after(leaveDelay-keptInterval, firstHalf, secondHalf, "-mps-1b-00-small")
		d.after(2*keptInterval, firstHalf, secondHalf)
	})
}

// Where it cannot be read what claims have, nothing goes.
func TestUnreadableClaims(t *testing.T) {
	inBubble(t, func(t *testing.T, m machine.Machine, others []string) {
		d := decide(t, m, nil)
		d.mu.Lock()
		d.unread = errors.New("the disk is gone")
		d.mu.Unlock()
		d.classes(third)
		d.after(time.Hour, with(leaving(others...), firstHalf, secondHalf)...)
		d.mu.Lock()
		d.unread = nil
		d.mu.Unlock()
		d.after(keptInterval, firstHalf, secondHalf)
	})
}

// A machine that has changed is published at once.
func TestMachineChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, m machine.Machine, _ []string) {
		d := decide(t, m, &classwatch.Known{})
		d.classes(third)
		d.after(time.Hour, firstHalf, secondHalf)
		sick := m
		sick.GPUs = slices.Clone(m.GPUs)
		sick.GPUs[0].Health = machine.Health{Reason: machine.FaultLost}
		d.Machine(t.Context(), &sick)
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, device := range d.published.Devices {
			if !strings.HasPrefix(device.Name, "monitor-") && fmt.Sprint(device.Taints) == "[]" {
				t.Errorf("%s has no taint", device.Name)
			}
		}
	})
}
