package claim_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
)

func TestDamagedRecordIsRebuilt(t *testing.T) {
	for name, content := range map[string]string{"truncated": `{"version":1,"cl`, "empty": "", "zeros": "\x00\x00\x00"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.prepared("a", claimtest.Exclusive, "gpu-1b-00")
			w.damage(w.record("a"), content)
			w.refused(w.allocate("b", "", "gpu-43-00"), nil) // others go on
			w.refused(w.allocate("thief", "", "gpu-1b-00"), failure.Conflict, "default/a")

			problems := w.restart()
			if len(problems) != 1 || !errors.Is(problems[0].Err, failure.Corrupt) || !strings.Contains(problems[0].Err.Error(), "set-aside") {
				t.Errorf("problems %v", problems)
			}
			w.check("a", "b")
			w.refused(w.allocate("c", "", "gpu-1b-00"), failure.Conflict, "default/a")
			w.unprepare(c) // the compute mode comes back, from the copy
			w.check("b")
		})
	}
}

// The kubelet's next call puts a record back, too, without a restart.
func TestRecordIsPutBackByTheNextCall(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"lost":    os.Remove,
		"damaged": func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.prepared("a", claimtest.Exclusive, "gpu-1b-00")
			w.must(damage(w.record("a")))
			w.prepare(c)
			w.check("a")
			w.must(damage(w.record("a")))
			w.unprepare(c)
			w.check()
			if len(w.Damage) != 2 || !errors.Is(w.Damage[0], failure.Corrupt) {
				t.Errorf("told: %v", w.Damage)
			}
		})
	}
}

func TestLostRecordIsRestored(t *testing.T) {
	w := newWorld(t)
	c := w.prepared("a", claimtest.Exclusive, "gpu-1b-00")
	w.must(os.Remove(w.record("a")))
	if problems := w.restart(); len(problems) != 1 {
		t.Errorf("problems %v", problems)
	}
	w.check("a")
	w.unprepare(c)
	w.check()
}

func TestDamagedBeyondRepair(t *testing.T) {
	w := newWorld(t)
	c := w.prepared("a", "", "gpu-1b-00")
	w.damage(w.record("a"), "{")
	w.damage(w.specification("a"), "{")
	if problems := w.restart(); len(problems) != 1 || !strings.Contains(problems[0].Err.Error(), "could not be rebuilt") {
		t.Errorf("problems %v", problems)
	}
	w.prepare(c) // the kubelet's next call
	w.check("a")
	w.unprepare(c)
	w.check()
}

func TestRecordOfANewerVersionIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	c := w.prepared("a", "", "gpu-1b-00")
	newer := w.edit("a", `"version":1`, `"version":99`)
	if problems := w.restart(); len(problems) != 1 || !strings.Contains(problems[0].Err.Error(), "version 99") {
		t.Errorf("problems %v", problems)
	}
	w.refused(c, failure.Unsupported, "run the version that wrote it")
	w.refused(w.allocate("b", "", "gpu-1b-00"), failure.Conflict, "default/a")
	if err := w.m.Unprepare(t.Context(), claimtest.Reference(c)); !errors.Is(err, failure.Unsupported) {
		t.Errorf("release: %v", err)
	}
	if now, err := os.ReadFile(w.record("a")); err != nil || string(now) != newer {
		t.Errorf("the record was changed: %v", err)
	}
}
