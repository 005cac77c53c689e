// Package hardwaretest is the one suite that every implementation of the ports
// in pkg/hardware passes, on simulated machines.
package hardwaretest

import (
	"context"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// Fixture is an implementation, and the machine that it must see.
type Fixture struct {
	GPUs    hardware.GPUs
	Machine *simulatortest.Machine
}

// TestGPUs runs the suite. make makes a fixture of the machine with that name
// in demo/machines, and cleans up after itself.
func TestGPUs(t *testing.T, make func(t *testing.T, machine string) Fixture) {
	for name, test := range map[string]func(*testing.T, func(*testing.T, string) Fixture){
		"EveryMachine":        testEveryMachine,
		"Lost":                testLost,
		"ResetRequired":       testResetRequired,
		"MemoryUnknown":       testMemoryUnknown,
		"Xid":                 testXid,
		"XidOfOldDriver":      testXidOfOldDriver,
		"Driver":              testDriver,
		"ComputeMode":         testComputeMode,
		"ComputeModeErrors":   testComputeModeErrors,
		"SlowGPU":             testSlowGPU,
		"Concurrency":         testConcurrency,
		"Watch":               testWatch,
		"WatchSurvivesLoss":   testWatchSurvivesLoss,
		"WatchWithoutEvents":  testWatchWithoutEvents,
		"WatchEndsWithDriver": testWatchEndsWithDriver,
		"MIGMode":             testMIGMode,
		"MIGModeNeedsReset":   testMIGModeNeedsReset,
		"MIGProfiles":         testMIGProfiles,
		"MIGRules":            testMIGRules,
		"MIGRoomAgain":        testMIGRoomAgain,
		"MIGOthers":           testMIGOthers,
		"MIGErrors":           testMIGErrors,
		"MIGWithout":          testMIGWithout,
		"MIGBusy":             testMIGBusy,
		"MIGFailures":         testMIGFailures,
		"MIGHalfMade":         testMIGHalfMade,
		"MIGLost":             testMIGLost,
		"MIGReboot":           testMIGReboot,
		"MIGSideBySide":       testMIGSideBySide,
		"MIGConcurrency":      testMIGConcurrency,
		"MIGEvents":           testMIGEvents,
		"MIGNotPermitted":     testNotPermitted,
		"MIGProfilesNeedMode": testProfilesNeedMIG,
	} {
		t.Run(name, func(t *testing.T) { test(t, make) })
	}
}

func describe(t *testing.T, f Fixture) hardware.Description {
	t.Helper()
	d, err := f.GPUs.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// watch runs Watch beside the test. Its events come in the channel; stop ends
// it and fails the test where it does not end well.
func watch(t *testing.T, f Fixture) (events <-chan hardware.Event, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan hardware.Event, 1024)
	ended := make(chan error, 1)
	go func() { ended <- f.GPUs.Watch(ctx, func(e hardware.Event) { seen <- e }) }()
	return seen, func() {
		t.Helper()
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Watch ended with %v", err)
			}
		case <-time.After(patiencetest.Limit):
			t.Fatal("Watch does not end with its context")
		}
	}
}

// until raises again and again, since nothing says that Watch has begun, until
// an event comes that accept takes.
func until(t *testing.T, events <-chan hardware.Event, raise func(), accept func(hardware.Event) bool) {
	t.Helper()
	deadline := time.After(patiencetest.Limit)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	raise()
	for {
		select {
		case e := <-events:
			if accept(e) {
				return
			}
		case <-again.C:
			raise()
		case <-deadline:
			t.Fatal("no such event came")
		}
	}
}
