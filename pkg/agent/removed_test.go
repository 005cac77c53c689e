package agent

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestRemovedIsRemovedBehind(t *testing.T) {
	dir := t.TempDir()
	claim := filepath.Join(dir, "claim")
	fill := func() {
		if err := os.MkdirAll(filepath.Join(claim, "gpu"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := &removed{dir: filepath.Join(dir, "removed"), asked: make(chan struct{}, 1)}
		left := func() int {
			entries, err := os.ReadDir(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			return len(entries)
		}
		for range 2 { // the second time, with that of the first still there
			fill()
			for range 2 { // one that is not there is no error
				if err := r.Take(claim); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.Stat(claim); !os.IsNotExist(err) {
				t.Fatalf("it is still there: %v", err)
			}
		}
		if left() != 2 {
			t.Errorf("%d are to be removed, want 2", left())
		}
		<-r.asked // by an agent that was killed since
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.run(ctx)
		synctest.Wait()
		if left() != 0 {
			t.Errorf("%d are left at the start", left())
		}
		fill()
		if err := r.Take(claim); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if left() != 1 {
			t.Errorf("%d are to be removed, want 1: others may be released now", left())
		}
		<-time.After(removedDelay)
		synctest.Wait()
		if left() != 0 {
			t.Errorf("%d are left", left())
		}
	})
}

// A disk without place for what is to be removed must not keep a claim from being released.
func TestRemovedAtOnceWhereItCannotBeKept(t *testing.T) {
	dir := t.TempDir()
	claim := filepath.Join(dir, "claim")
	if err := os.MkdirAll(filepath.Join(claim, "gpu"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "removed"), nil, 0o600); err != nil { // in its place
		t.Fatal(err)
	}
	r := &removed{dir: filepath.Join(dir, "removed"), asked: make(chan struct{}, 1)}
	if err := r.Take(claim); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(claim); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}
