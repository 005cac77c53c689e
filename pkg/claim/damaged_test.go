package claim_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
)

func TestDamagedRecordIsRebuilt(t *testing.T) {
	for name, content := range map[string]string{"truncated": `{"version":1,"cl`, "empty": "", "zeros": "\x00\x00\x00"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
			w.prepare(c)
			if err := os.WriteFile(filepath.Join(w.Dir, "claims", "uid-a.json"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
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
			c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
			w.prepare(c)
			record := filepath.Join(w.Dir, "claims", "uid-a.json")
			if err := damage(record); err != nil {
				t.Fatal(err)
			}
			w.prepare(c)
			w.check("a")
			if err := damage(record); err != nil {
				t.Fatal(err)
			}
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
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
	w.prepare(c)
	if err := os.Remove(filepath.Join(w.Dir, "claims", "uid-a.json")); err != nil {
		t.Fatal(err)
	}
	if problems := w.restart(); len(problems) != 1 {
		t.Errorf("problems %v", problems)
	}
	w.check("a")
	w.unprepare(c)
	w.check()
}

func TestDamagedBeyondRepair(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", "", "gpu-1b-00")
	w.prepare(c)
	for _, path := range []string{"claims/uid-a.json", "cdi/dovetail.dev-claim-uid-a.json"} {
		if err := os.WriteFile(filepath.Join(w.Dir, path), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
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
	c := w.allocate("a", "", "gpu-1b-00")
	w.prepare(c)
	path := filepath.Join(w.Dir, "claims", "uid-a.json")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(content), `"version":1`, `"version":99`, 1)
	if err := os.WriteFile(path, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	if problems := w.restart(); len(problems) != 1 || !strings.Contains(problems[0].Err.Error(), "version 99") {
		t.Errorf("problems %v", problems)
	}
	w.refused(c, failure.Unsupported, "run the version that wrote it")
	w.refused(w.allocate("b", "", "gpu-1b-00"), failure.Conflict, "default/a")
	if err := w.m.Unprepare(t.Context(), claimtest.Reference(c)); !errors.Is(err, failure.Unsupported) {
		t.Errorf("release: %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != newer {
		t.Errorf("the record was changed: %v", err)
	}
}
