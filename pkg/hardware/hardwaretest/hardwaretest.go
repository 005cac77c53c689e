// Package hardwaretest is the one suite that every implementation of the ports
// in pkg/hardware passes, on simulated machines.
package hardwaretest

import (
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
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
		"MemoryLimits":        testMemoryLimits,
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
