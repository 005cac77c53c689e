package claim_test

import (
	"os"
	"path/filepath"
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
	out := &world{t: t}
	var err error
	out.World, err = claimtest.Create(t.TempDir(), name)
	out.must(err)
	out.restart()
	return out
}

// restart is what a new agent does. It returns what recovery found.
func (w *world) restart() []claim.Problem {
	w.t.Helper()
	m, problems, err := w.Manager(w.t.Context())
	w.must(err)
	w.m = m
	return problems
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// look is what the observer does after a change.
func (w *world) look() {
	w.t.Helper()
	w.must(w.Look(w.t.Context(), w.m))
}

func (w *world) allocate(name, parameters string, devices ...string) *resourceapi.ResourceClaim {
	w.t.Helper()
	c, err := w.Allocate(name, parameters, devices...)
	w.must(err)
	return c
}

func (w *world) prepare(c *resourceapi.ResourceClaim) []claim.Device {
	w.t.Helper()
	devices, err := w.m.Prepare(w.t.Context(), c)
	w.must(err)
	return devices
}

// prepared is a claim that was allocated and prepared.
func (w *world) prepared(name, parameters string, devices ...string) *resourceapi.ResourceClaim {
	w.t.Helper()
	c := w.allocate(name, parameters, devices...)
	w.prepare(c)
	return c
}

// started is a prepared one whose Pod runs.
func (w *world) started(name, parameters string, devices ...string) *resourceapi.ResourceClaim {
	w.t.Helper()
	c := w.prepared(name, parameters, devices...)
	w.must(w.Start(name))
	return c
}

func (w *world) unprepare(c *resourceapi.ResourceClaim) {
	w.t.Helper()
	w.must(w.m.Unprepare(w.t.Context(), claimtest.Reference(c)))
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
	w.must(err)
	for _, d := range differences {
		w.t.Error(d)
	}
}

// record is the file of a claim's record, and specification that of its CDI specification.
func (w *world) record(name string) string {
	return filepath.Join(w.Dir, "claims", "uid-"+name+".json")
}

func (w *world) specification(name string) string {
	return filepath.Join(w.Dir, "cdi", "dovetail.dev-claim-uid-"+name+".json")
}

// damage has something else in a file of a claim's.
func (w *world) damage(file, content string) {
	w.t.Helper()
	w.must(os.WriteFile(file, []byte(content), 0o600))
}

// edit changes what a claim's record says, and returns what it then says.
func (w *world) edit(name, from, to string) string {
	w.t.Helper()
	content, err := os.ReadFile(w.record(name))
	w.must(err)
	edited := strings.Replace(string(content), from, to, 1)
	if edited == string(content) {
		w.t.Fatalf("the record of %s is without %s: %s", name, from, content)
	}
	w.damage(w.record(name), edited)
	return edited
}
