package claim_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// A failed step takes back the NIC as well, and the GPU of a pair.
func TestPairIsRolledBack(t *testing.T) {
	w := newWorld(t)
	pair := pairOf(w)
	a := w.allocate("a", `{"apiVersion":"dovetail.dev/v1alpha1","kind":"PairConfig","gpu":{"computeMode":"ExclusiveProcess"}}`, pair.Name)
	w.must(w.Machine.Fail(pair.GPU.UUID, "nvmlDeviceSetComputeMode", simulator.Failure{Times: 1, Error: simulator.FailureUnknown}))
	if _, err := w.m.Prepare(t.Context(), a); err == nil {
		t.Fatal("no error")
	}
	w.check()
	d := w.prepare(a)
	if d[0].UUID != pair.GPU.UUID || d[0].NIC.Closeness != machine.ClosenessPIX {
		t.Errorf("told %+v", d[0])
	}
	w.must(w.Start("a"))
	w.check("a")
	w.refused(w.allocate("b", "", pair.GPU.Name()), failure.Conflict, "held for claim default/a")
	w.refused(w.allocate("b", "", pair.NIC.Name()), failure.Conflict, "held for claim default/a")
	w.must(w.End("a"))
	w.unprepare(a)
	w.check()
}

func pairOf(w *world) machine.Device {
	devices := w.m.Machine().Devices()
	return devices[slices.IndexFunc(devices, func(d machine.Device) bool { return d.Kind == machine.KindPair })]
}

// NCCL is told where declared pairs sit, as long as the claim is prepared.
func TestTopologyIsWritten(t *testing.T) {
	w := newWorldOf(t, "flat-vm")
	now := w.m.Machine()
	w.Network.Pairs = []machine.DeclaredPair{{GPU: now.GPUs[0].Address, NIC: w.nic(1).Address}}
	w.look()
	name := "pair-" + now.GPUs[0].Address.Label() + "-" + w.nic(1).Address.Label()
	a := w.prepared("a", "", name)
	file := filepath.Join(w.Dir, "nccl", "uid-a.xml")
	content, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(content), now.GPUs[0].Address.String()) || !strings.Contains(string(content), w.nic(1).Address.String()) {
		t.Errorf("%s, %v", content, err)
	}
	spec, err := os.ReadFile(w.specification("a"))
	if err != nil || !strings.Contains(string(spec), file) || !strings.Contains(string(spec), "NCCL_TOPO_FILE=") {
		t.Errorf("%s, %v", spec, err)
	}
	w.must(os.Remove(file))
	w.prepare(a)
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	w.unprepare(a)
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	w.check()
}
