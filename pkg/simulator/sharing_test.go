package simulator_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/hardwaretest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func TestSharingConformance(t *testing.T) {
	hardwaretest.TestSharing(t, func(t *testing.T, name string) hardwaretest.SharingFixture {
		m := simulatortest.New(t, name)
		return hardwaretest.SharingFixture{Sharing: m.Sharing(), Machine: m, Crash: func(t *testing.T, devices []string) {
			must(t, m.RaiseMPS(devices, hardware.MPSRestarted))
		}}
	})
}

// sharingCalls are all that are about a control daemon over the first GPU of mps-v3, in an order
// in which each has something to do.
func sharingCalls(ctx context.Context, h hardware.Sharing, gpu string) []struct {
	name string
	do   func() error
} {
	devices := []string{gpu}
	return []struct {
		name string
		do   func() error
	}{
		{simulator.CallStartMPS, func() error { _, err := h.StartMPS(ctx, devices); return err }},
		{simulator.CallMakeNamespace, func() error { _, err := h.MakeNamespace(ctx, devices, "a", hardware.MPSLimits{}); return err }},
		{simulator.CallRemoveNamespace, func() error { return h.RemoveNamespace(ctx, devices, "a") }},
		{simulator.CallStopMPS, func() error { return h.StopMPS(ctx, devices) }},
		{simulator.CallSetTimeSlice, func() error { return h.SetTimeSlice(ctx, gpu, machine.TimeSliceLong) }},
		{simulator.CallTimeSlice, func() error { _, err := h.TimeSlice(ctx, gpu); return err }},
	}
}

// TestSharingCallsCanFail, and change nothing then.
func TestSharingCallsCanFail(t *testing.T) {
	m := simulatortest.New(t, "mps-v3")
	for _, c := range sharingCalls(t.Context(), m.Sharing(), m.Spec().GPUs[0].UUID) {
		before, err := m.State()
		must(t, err)
		must(t, m.Fail("0", c.name, simulator.Failure{Times: 1, Error: simulator.FailureInUse}))
		if err := c.do(); !errors.Is(err, failure.Busy) {
			t.Errorf("%s: %v", c.name, err)
		}
		after, err := m.State()
		must(t, err)
		if len(after.MPS) != len(before.MPS) || gpu(t, m, 0).TimeSliceOf() != before.GPU(0).TimeSliceOf() ||
			len(after.MPS) > 0 && len(after.MPS[0].Namespaces) != len(before.MPS[0].Namespaces) {
			t.Errorf("%s failed, and changed %+v to %+v", c.name, before.MPS, after.MPS)
		}
		must(t, c.do())
	}
}

// TestRebootEndsSharing: nothing of it outlives the machine's processes.
func TestRebootEndsSharing(t *testing.T) {
	m := simulatortest.New(t, "mps-v3")
	devices := []string{m.Spec().GPUs[1].UUID}
	_, err := m.Sharing().StartMPS(t.Context(), devices)
	must(t, err)
	must(t, m.SetTimeSlice("1", machine.TimeSliceShort))
	must(t, m.Reboot())
	state, err := m.State()
	must(t, err)
	if len(state.MPS) != 0 || gpu(t, m, 1).TimeSliceOf() != machine.TimeSliceDefault {
		t.Errorf("after a reboot: %+v, time slice %s", state.MPS, gpu(t, m, 1).TimeSliceOf())
	}
	if err := m.RaiseMPS(devices, hardware.MPSFaulted); !errors.Is(err, failure.Absent) {
		t.Errorf("an event of no daemon: %v", err)
	}
}

// TestMPSEventsAreNoGPUEvents: the driver knows nothing of control daemons.
func TestMPSEventsAreNoGPUEvents(t *testing.T) {
	m := simulatortest.New(t, "mps-v3")
	uuid := m.Spec().GPUs[0].UUID
	_, err := m.Sharing().StartMPS(t.Context(), []string{uuid})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan hardware.Event, 1024)
	ended := make(chan error, 1)
	go func() { ended <- m.GPUs().Watch(ctx, func(e hardware.Event) { seen <- e }) }()
	var got []hardware.Event
	for !slices.Contains(got, hardware.Event{UUID: uuid, Xid: 31}) {
		must(t, m.RaiseMPS([]string{uuid}, hardware.MPSFaulted))
		must(t, m.RaiseXid("0", 31))
		select {
		case e := <-seen:
			got = append(got, e)
		default:
		}
	}
	cancel()
	must(t, <-ended)
	if slices.Contains(got, hardware.Event{UUID: uuid}) {
		t.Errorf("the GPU's events are %+v", got)
	}
}
