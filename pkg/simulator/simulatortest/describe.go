package simulatortest

import (
	"path/filepath"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware/host"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Describe makes a machine and describes it as the agent sees it.
func Describe(t testing.TB, name string) machine.Machine {
	t.Helper()
	m := New(t, name)
	described, err := host.New(m.GPUs(), filepath.Join(m.Root(), "sys"), filepath.Join(m.Root(), "proc")).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return described
}
