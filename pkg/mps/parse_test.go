package mps

import (
	"errors"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func TestParseTimeSlice(t *testing.T) {
	for table, want := range map[string]machine.TimeSlice{
		"| GPU compute policies:  |\n| GPU   Name       Value  |\n|=====|\n|   0   Timeslice  Default |\n": machine.TimeSliceDefault,
		"GPU 0: Timeslice: SHORT":     machine.TimeSliceShort,
		"|  1   medium |":             machine.TimeSliceMedium,
		"|  0   Timeslice  Long  |":   machine.TimeSliceLong,
		"":                            "",
		"|  0   Timeslice  Endless |": "",
		"| 0 Short |\n| 1 Long |":     "", // of two GPUs
		"| 0 Shortly |":               "",
	} {
		if got, err := parseTimeSlice(table); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", table, got, err, want)
		}
	}
}

func TestParseServers(t *testing.T) {
	got, err := parseServers("mps,0,48201,Ready,/run/x,GPU-a;GPU-b,-\nuid_0,0,5,FAULT,/run/y,GPU-a,-\n")
	if err != nil || len(got) != 2 || got[0] != (server{"mps", false, 48201}) || got[1] != (server{"uid_0", true, 5}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := parseServers(""); err != nil || len(got) != 0 {
		t.Errorf("no server: %v, %v", got, err)
	}
	if got, err := parseServers("Cannot find MPS control daemon process"); err == nil {
		t.Errorf("an error: %v", got)
	}
}

// TestMemoryLimit: the devices' order, not a map's; and each size once where that will do.
func TestMemoryLimit(t *testing.T) {
	const gi = 1 << 30
	for _, c := range []struct {
		devices []string
		memory  map[string]uint64
		want    string
	}{
		{[]string{"GPU-b", "GPU-a"}, nil, ""},
		{[]string{"GPU-b", "GPU-a"}, map[string]uint64{"GPU-a": gi, "GPU-b": gi}, "1024M"},
		{[]string{"GPU-b", "GPU-a"}, map[string]uint64{"GPU-a": gi, "GPU-b": 2 * gi}, "GPU-b=2048M,GPU-a=1024M"},
		{[]string{"GPU-b", "GPU-a"}, map[string]uint64{"GPU-a": gi}, "GPU-a=1024M"},
		{[]string{"GPU-a"}, map[string]uint64{"GPU-a": gi - 1}, "1023M"},
	} {
		if got := memoryLimit(c.devices, c.memory); got != c.want {
			t.Errorf("%v of %v: %q, want %q", c.memory, c.devices, got, c.want)
		}
	}
}

func TestCheckNamespace(t *testing.T) {
	for _, c := range []struct {
		name, pipe string
		limits     hardware.MPSLimits
		want       string
	}{
		{"a-1", "/pipe/a_1", hardware.MPSLimits{ThreadPercentage: 100, Memory: map[string]uint64{"GPU-a": 1 << 20}}, ""},
		{"default", "/pipe/default", hardware.MPSLimits{}, "use another name"},
		{"a", "/" + strings.Repeat("p", socketPath), hardware.MPSLimits{}, "shorter by 9 bytes"},
		{"a", "/pipe/a", hardware.MPSLimits{Memory: map[string]uint64{"GPU-a": 0}}, "1048576 (1Mi)"},
		{"a", "/pipe/a", hardware.MPSLimits{Memory: map[string]uint64{"GPU-b": 1 << 30}}, "GPU-b"},
	} {
		err := checkNamespace([]string{"GPU-a"}, c.name, c.pipe, c.limits)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, failure.Invalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestEvents(t *testing.T) {
	var e events
	for range kept + 1 {
		e.emit(hardware.MPSEvent{Kind: hardware.MPSRestarted})
	}
	if len(e.waiting) != kept {
		t.Errorf("%d events wait, want %d", len(e.waiting), kept)
	}
}
