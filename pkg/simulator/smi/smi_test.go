package smi_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
	"github.com/dovetail-dra/dovetail/pkg/simulator/smi"
)

func run(m *simulatortest.Machine, args ...string) (output string, status int) {
	var out bytes.Buffer
	status = smi.Run(m.Machine, args, &out, &out)
	return out.String(), status
}

func TestComputePolicy(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may set policies")
	}
	m := simulatortest.New(t, "l40s")
	uuid := m.Spec().GPUs[2].UUID
	for n, want := range machine.TimeSlices {
		// Both forms of the option are in use.
		for _, args := range [][]string{{"-i", uuid, "--set-timeslice=" + string(rune('0'+n))}, {"-i=2", "--set-timeslice", string(rune('0' + n))}} {
			if output, status := run(m, append([]string{"compute-policy"}, args...)...); status != 0 {
				t.Errorf("%q: %s", args, output)
			}
		}
		state, err := m.State()
		if err != nil {
			t.Fatal(err)
		}
		if got := state.GPU(2).TimeSliceOf(); got != want || state.GPU(1).TimeSliceOf() != machine.TimeSliceDefault {
			t.Errorf("--set-timeslice=%d: %s, want %s", n, got, want)
		}
	}
	output, status := run(m, "compute-policy", "-i", uuid, "-l")
	if status != 0 || !strings.Contains(output, "|   2     Timeslice       Long        |\n") || strings.Contains(output, "|   1 ") {
		t.Errorf("--list: %d\n%s", status, output)
	}
	if output, status := run(m, "compute-policy", "--list"); status != 0 || strings.Count(output, "Timeslice") != 4 {
		t.Errorf("--list of all: %d\n%s", status, output)
	}
	state, err := m.State()
	if err != nil {
		t.Fatal(err)
	}
	if got := state.Runs["nvidia-smi compute-policy"]; got != 10 {
		t.Errorf("%d runs were counted", got)
	}
}

func TestRefusals(t *testing.T) {
	m := simulatortest.New(t, "l40s")
	for _, args := range [][]string{
		{}, {"-q"}, {"compute-policy"}, {"compute-policy", "--set-timeslice=4"}, {"compute-policy", "--set-timeslice=Long"},
		{"compute-policy", "-i", "7", "-l"}, {"compute-policy", "-l", "--odd"}, {"compute-policy", "-l", "--set-timeslice=1"},
	} {
		if output, status := run(m, args...); status == 0 || output == "" {
			t.Errorf("%q: %s", args, output)
		}
	}
	if err := m.SetDriver(simulator.DriverUnloaded); err != nil {
		t.Fatal(err)
	}
	if _, status := run(m, "-L"); status != 9 {
		t.Errorf("without a driver: status %d", status)
	}
	if _, status := run(m, "compute-policy", "-i", "0", "--set-timeslice=1"); status == 0 {
		t.Error("a time slice without a driver")
	}
}
