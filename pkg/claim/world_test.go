package claim_test

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// world is a claimtest.World whose every step must succeed.
type world struct {
	*claimtest.World
	t *testing.T
	m *claim.Manager
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, "dgx-h100")
}

// newWorldOf makes a world with a machine of demo/machines.
func newWorldOf(t *testing.T, name string) *world {
	t.Helper()
	w, err := claimtest.Create(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	out := &world{World: w, t: t}
	out.restart()
	return out
}

// restart is what a new agent does. It returns what recovery found.
func (w *world) restart() []claim.Problem {
	w.t.Helper()
	m, problems, err := w.Manager(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.m = m
	return problems
}

func (w *world) allocate(name, parameters string, devices ...string) *resourceapi.ResourceClaim {
	w.t.Helper()
	c, err := w.Allocate(name, parameters, devices...)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) prepare(c *resourceapi.ResourceClaim) []claim.Device {
	w.t.Helper()
	devices, err := w.m.Prepare(w.t.Context(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	return devices
}

func (w *world) unprepare(c *resourceapi.ResourceClaim) {
	w.t.Helper()
	if err := w.m.Unprepare(w.t.Context(), claimtest.Reference(c)); err != nil {
		w.t.Fatal(err)
	}
}

// refused prepares and wants an error of the class with those words.
func (w *world) refused(c *resourceapi.ResourceClaim, class error, words ...string) {
	w.t.Helper()
	_, err := w.m.Prepare(w.t.Context(), c)
	if failure.ClassOf(err) != class {
		w.t.Fatalf("error %v, want class %v", err, class)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.t.Errorf("%q is not in %q", word, err)
		}
	}
}

func (w *world) check(prepared ...string) {
	w.t.Helper()
	differences, err := w.Check(w.t.Context(), prepared...)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range differences {
		w.t.Error(d)
	}
}
