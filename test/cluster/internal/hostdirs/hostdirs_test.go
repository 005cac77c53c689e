package hostdirs

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLastOneOutRemovesWhatWasMade(t *testing.T) {
	top := t.TempDir()
	old, made, used := filepath.Join(top, "old"), filepath.Join(top, "p/made"), filepath.Join(top, "used")
	if err := os.Mkdir(old, 0o755); err != nil {
		t.Fatal(err)
	}
	r := Registry{filepath.Join(top, "base/.registry"), filepath.Join(top, "lock"), []Dir{{Path: old}, {Path: made}, {Path: used}}}
	for _, c := range []string{"a", "b"} {
		if err := r.Claim(c, "/state/"+c); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Claim("a", "/elsewhere"); err == nil {
		t.Error("one name for two state directories")
	}
	if dir, ok := r.StateDir("b"); !ok || dir != "/state/b" {
		t.Error(dir, ok)
	}
	if err := os.WriteFile(filepath.Join(used, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.Release("a"); err != nil {
		t.Fatal(err)
	}
	if !exists(made) {
		t.Error("removed while a cluster was left")
	}
	for range 2 { // idempotent
		if err := r.Release("b"); err != nil {
			t.Fatal(err)
		}
	}
	if exists(filepath.Dir(made)) || exists(filepath.Dir(r.dir)) {
		t.Error("something that was made is left")
	}
	if !exists(old) || !exists(used) {
		t.Error("something was removed that was there before, or is in use")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
