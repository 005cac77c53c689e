package simulatortest

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/host"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Describe makes a machine and describes it as the agent sees it.
func Describe(t testing.TB, name string) machine.Machine {
	t.Helper()
	m := New(t, name)
	h := host.New(m.GPUs(), filepath.Join(m.Root(), "sys"), filepath.Join(m.Root(), "proc"))
	described, err := h.Describe(t.Context())
	if errors.Is(err, failure.Unreachable) && len(m.Spec().GPUs) == 0 {
		described.BootID, err = h.BootID()
	}
	if err != nil {
		t.Fatal(err)
	}
	described.CgroupV2 = true // as nodes are, whatever this machine is
	network, err := m.NICs().DescribeNICs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	described.NICs, described.RDMANodes, described.RDMAExclusive = network.NICs, network.RDMANodes, network.RDMAExclusive
	described.Faults = append(described.Faults, network.Faults...)
	return described
}
