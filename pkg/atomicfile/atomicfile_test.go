package atomicfile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWriteReplaces(t *testing.T) {
	for _, durable := range []bool{false, true} {
		w := Writer{Dir: t.TempDir(), Durable: durable, Mode: 0o640}
		for _, content := range []string{"first, and long", "second"} {
			if err := w.Write("record.json", []byte(content)); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(w.Dir, "record.json")); err != nil || string(got) != content {
				t.Errorf("durable %v: got %q, %v", durable, got, err)
			}
		}
		if info, err := os.Stat(filepath.Join(w.Dir, "record.json")); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		onlyFile(t, w.Dir)
	}
}

func TestWriteThatFailsLeavesTheOld(t *testing.T) {
	w := Writer{Dir: t.TempDir(), Durable: true, Mode: 0o600}
	if err := w.Write("record.json", []byte("old")); err != nil {
		t.Fatal(err)
	}
	// The target's place is lost at the last moment.
	w.BeforeRename = func() {
		if err := os.Remove(filepath.Join(w.Dir, "record.json")); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(w.Dir, "record.json", "in-the-way"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Write("record.json", []byte("new")); err == nil {
		t.Fatal("no error")
	}
	onlyFile(t, w.Dir)
}

func TestRemoveIsIdempotent(t *testing.T) {
	w := Writer{Dir: t.TempDir(), Durable: true, Mode: 0o600}
	if err := w.Write("a", nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Remove("a"); err != nil {
			t.Error(err)
		}
	}
}

func TestSweepRemovesOnlyWhatTheDeadHaveLeft(t *testing.T) {
	w := Writer{Dir: t.TempDir(), Mode: 0o600}
	for _, name := range []string{".tmp-mine-1.json-7", ".tmp-other.json-8", "mine-2.json"} {
		if err := os.WriteFile(filepath.Join(w.Dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	alive := w
	alive.BeforeRename = func() {
		if err := w.Sweep("mine-"); err != nil {
			t.Error(err)
		}
	}
	if err := alive.Write("mine-3.json", []byte("alive")); err != nil {
		t.Errorf("a writer was disturbed: %v", err)
	}
	var left []string
	entries, _ := os.ReadDir(w.Dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if !slices.Equal(left, []string{".tmp-other.json-8", "mine-2.json", "mine-3.json"}) {
		t.Errorf("left: %q", left)
	}
}

func onlyFile(t *testing.T, dir string) {
	t.Helper()
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left in the directory: %v", entries)
	}
}
