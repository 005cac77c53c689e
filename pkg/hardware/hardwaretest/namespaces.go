package hardwaretest

import (
	"errors"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
)

func testNamespaces(t *testing.T, make func(*testing.T, string) SharingFixture) {
	f := make(t, "mps-v3")
	devices := f.uuids(1, 0)
	d := f.start(t, devices, 3)
	pipes := map[string]bool{d.Pipe: true}
	for _, c := range []struct {
		name   string
		limits hardware.MPSLimits
	}{
		{"plain", hardware.MPSLimits{}},
		{"a-b", hardware.MPSLimits{ThreadPercentage: 25, Memory: map[string]uint64{devices[0]: 4 << 30, devices[1]: 512 << 20}}},
		{"5a2d0c1e-6d2f-4c80-9a35-0242ac120002", hardware.MPSLimits{ThreadPercentage: 100}},
	} {
		pipe, err := f.Sharing.MakeNamespace(t.Context(), devices, c.name, c.limits)
		if err != nil || pipes[pipe] || pipe == "" {
			t.Errorf("namespace %s: pipe %q, %v", c.name, pipe, err)
		}
		pipes[pipe] = true
		c.limits.ThreadPercentage = 10 // again, and with other limits
		again, err := f.Sharing.MakeNamespace(t.Context(), devices, c.name, c.limits)
		if err != nil || again != pipe {
			t.Errorf("namespace %s again: pipe %q, %v", c.name, again, err)
		}
	}
	for range 2 {
		must(t, f.Sharing.RemoveNamespace(t.Context(), devices, "a-b"))
	}
	must(t, f.Sharing.StopMPS(t.Context(), devices))
	must(t, f.Sharing.RemoveNamespace(t.Context(), devices, "plain")) // its daemon is gone
}

func testNamespaceErrors(t *testing.T, make func(*testing.T, string) SharingFixture) {
	f := make(t, "mps-v3")
	devices := f.uuids(0)
	try := func(name string, limits hardware.MPSLimits, class error) {
		t.Helper()
		if pipe, err := f.Sharing.MakeNamespace(t.Context(), devices, name, limits); !errors.Is(err, class) {
			t.Errorf("namespace %q with %+v: %q, %v, want %v", name, limits, pipe, err, class)
		}
	}
	try("early", hardware.MPSLimits{}, failure.Absent)
	f.start(t, devices, 3)
	for _, name := range []string{"", "-a", "A", "a/b", "..", "a b", "a_b", strings.Repeat("a", 64)} {
		try(name, hardware.MPSLimits{}, failure.Invalid)
	}
	try("a", hardware.MPSLimits{ThreadPercentage: 101}, failure.Invalid)
	try("a", hardware.MPSLimits{ThreadPercentage: -1}, failure.Invalid)
	try("a", hardware.MPSLimits{Memory: map[string]uint64{f.uuids(1)[0]: 1 << 30}}, failure.Invalid)
	must(t, f.Sharing.StopMPS(t.Context(), devices))

	f = make(t, "l40s")
	devices = f.uuids(0)
	f.start(t, devices, 2)
	try("a", hardware.MPSLimits{}, failure.Unsupported)
	must(t, f.Sharing.RemoveNamespace(t.Context(), devices, "a"))
	must(t, f.Sharing.StopMPS(t.Context(), devices))
}
