package crash

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failpoint"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// TestKilledAtEveryPlace goes through all that a claim can have, all calls in which a
// process can be killed, and all places that each passes, as often as it does.
func TestKilledAtEveryPlace(t *testing.T) {
	for what, h := range hardwares {
		for name, on := range ways {
			if on.only != nil && !on.only(h) {
				continue
			}
			t.Run(what+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, h)
				if on.prepared {
					call(t, w, prepare)
				}
				if on.trouble != nil {
					must(t, on.trouble(w, h))
				}
				for _, place := range failpoint.All {
					n := 1
					for killedThenGoesOn(t, w, h, on, fmt.Sprintf("%s %d", place, n)) {
						n++
					}
					if n == 1 && slices.Contains(on.places, place) && !(place == failpoint.OutcomeWritten && onlyNICs(h)) {
						t.Errorf("does not pass %s", place)
					}
				}
			})
		}
	}
}

// killedThenGoesOn kills an agent, in a world of its own, and lets fresh ones recover:
// one that is left alone, one that the kubelet asks again, and, where the Pod has gone
// meanwhile, one that it asks for the release.
func killedThenGoesOn(t *testing.T, before *claimtest.World, h hardware, on way, armed string) bool {
	t.Helper()
	w := copied(t, before)
	if killed, err := kill(t, w, on.call, "a", armed); !killed {
		if (err != nil) != on.fails {
			t.Fatalf("%s ends with %v", on.call, err)
		}
		return false
	}
	if on.cure != nil {
		must(t, on.cure(w.Machine))
	}
	for _, next := range []string{"nothing", prepare, release} {
		after := copied(t, w)
		want := call(t, after, next)
		if next == "nothing" && on.prepared && on.call == prepare {
			want = []string{"a"} // containers run with it: it stays, whatever happens to a later call
		}
		if h.beside != nil {
			want = append(want, "b")
		}
		for _, d := range differences(t, after, want...) {
			t.Errorf("killed at %s, then %s: %s", armed, next, d)
		}
	}
	return true
}

// call has a fresh agent recover and then do what the kubelet asks. It returns claim a
// where it must be on record then.
func call(t *testing.T, w *claimtest.World, what string) (recorded []string) {
	t.Helper()
	m, problems, err := w.Manager(t.Context())
	if err != nil || len(problems) > 0 {
		t.Fatalf("recovery: %v, %v", problems, err)
	}
	c := read(t, w, "a")
	switch what {
	case prepare:
		_, err = m.Prepare(t.Context(), c)
		must(t, err)
		return []string{"a"}
	case release:
		must(t, m.Unprepare(t.Context(), claimtest.Reference(c)))
		return nil
	}
	records, err := m.Records()
	must(t, err)
	for _, r := range records {
		if r.Entry.Claim.Name == c.Name {
			recorded = append(recorded, c.Name)
		}
	}
	return recorded
}

// TestKilledWhileWaiting is a release that waits for who has a partition open.
func TestKilledWhileWaiting(t *testing.T) {
	for _, armed := range []string{"cdi-removed 1", "release-written 1", "step-undone 1", "step-undone 2", "cdi-removed 2", "step-undone 3", "cdi-removed 3"} {
		t.Run(armed, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, hardwares["two of a GPU"])
			call(t, w, prepare)
			hold := holdFirst(t, w)
			if killed, err := kill(t, w, patientRelease, "a", armed); !killed {
				t.Fatalf("not killed: %v", err)
			}
			m, problems, err := w.Manager(t.Context())
			if err != nil || len(problems) > 0 && !errors.Is(problems[0].Err, failure.Busy) {
				t.Fatalf("recovery: %v, %v", problems, err)
			}
			c := read(t, w, "a")
			if _, err := m.Prepare(t.Context(), c); len(problems) > 0 && !errors.Is(err, failure.Busy) {
				t.Errorf("prepared again while it is held: %v", err)
			}
			if err := m.Unprepare(t.Context(), claimtest.Reference(c)); !errors.Is(err, failure.Busy) {
				t.Errorf("released while it is held: %v", err)
			}
			letGo(hold)
			for _, next := range []string{prepare, release} {
				after := copied(t, w)
				for _, d := range differences(t, after, call(t, after, next)...) {
					t.Errorf("then %s: %s", next, d)
				}
			}
		})
	}
}

// holdFirst opens the partition that is released last.
func holdFirst(t *testing.T, w *claimtest.World) *simulator.Hold {
	t.Helper()
	now, err := w.Describe(t.Context())
	must(t, err)
	instances := now.GPUs[0].MIG.Instances
	hold, err := w.Machine.Hold("0", instances[len(instances)-1].ID)
	must(t, err)
	return hold
}

// TestKilledAgainAndAgain kills the same claim's life at one place after another.
func TestKilledAgainAndAgain(t *testing.T) {
	w := newWorld(t, hardwares["two of a GPU"])
	for _, operation := range []string{prepare, release, prepare, release} {
		for _, place := range failpoint.All {
			for n := 1; n <= 2; n++ {
				if _, err := kill(t, w, operation, "a", fmt.Sprintf("%s %d", place, n)); err != nil {
					t.Fatal(err)
				}
			}
		}
		call(t, w, operation)
	}
	for _, d := range differences(t, w) {
		t.Error(d)
	}
}

func newWorld(t *testing.T, h hardware) *claimtest.World {
	t.Helper()
	w, err := claimtest.Create(filepath.Join(t.TempDir(), "world"), h.machine)
	must(t, err)
	if h.byHand != nil {
		must(t, h.byHand(w.Machine))
		must(t, w.Settle(t.Context()))
	}
	if h.shares == nil {
		_, err = w.Allocate("a", h.parameters, h.devices...)
	} else {
		_, err = w.AllocateShares("a", h.parameters, h.shares...)
	}
	must(t, err)
	if h.beside != nil {
		b, err := w.AllocateShares("b", h.parameters, h.beside...)
		must(t, err)
		m, _, err := w.Manager(t.Context())
		must(t, err)
		_, err = m.Prepare(t.Context(), b)
		must(t, err)
	}
	return w
}

func copied(t *testing.T, w *claimtest.World) *claimtest.World {
	t.Helper()
	c, err := w.Copy(filepath.Join(t.TempDir(), "world"))
	must(t, err)
	return c
}

func read(t *testing.T, w *claimtest.World, name string) *resourceapi.ResourceClaim {
	t.Helper()
	c, err := w.Claim(name)
	must(t, err)
	return c
}

func differences(t *testing.T, w *claimtest.World, prepared ...string) []string {
	t.Helper()
	d, err := w.Check(t.Context(), prepared...)
	must(t, err)
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
