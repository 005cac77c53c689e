package atomicfile

import (
	"os"
	"path/filepath"
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

func TestSweepRemovesOnlyUnfinishedFilesOfThatName(t *testing.T) {
	w := Writer{Dir: t.TempDir(), Mode: 0o600}
	for _, name := range []string{".tmp-mine-1.json-7", ".tmp-other.json-8", "mine-2.json"} {
		if err := os.WriteFile(filepath.Join(w.Dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Sweep("mine-"); err != nil {
		t.Fatal(err)
	}
	left, _ := os.ReadDir(w.Dir)
	if len(left) != 2 || left[0].Name() != ".tmp-other.json-8" || left[1].Name() != "mine-2.json" {
		t.Errorf("left: %v", left)
	}
}

func onlyFile(t *testing.T, dir string) {
	t.Helper()
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left in the directory: %v", entries)
	}
}
