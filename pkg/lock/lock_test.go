package lock

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"
)

func TestLockExcludes(t *testing.T) {
	dir := Dir(t.TempDir())
	counter := 0
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				unlock, err := dir.Lock(t.Context(), "gpu-1b-00", "claim-1")
				if err != nil {
					t.Error(err)
					return
				}
				counter++
				unlock()
			}
		})
	}
	wg.Wait()
	if counter != 16*50 {
		t.Errorf("counted %d", counter)
	}
	if left, _ := os.ReadDir(string(dir)); len(left) > 0 {
		t.Errorf("lock files are left: %v", left)
	}
}

func TestLockOfOthersDoesNotWait(t *testing.T) {
	dir := Dir(t.TempDir())
	unlock, err := dir.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	other, err := dir.Lock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
}

func TestLockTakesDuplicatesOnce(t *testing.T) {
	unlock, err := Dir(t.TempDir()).Lock(t.Context(), "a", "b", "a")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestLockHonoursContext(t *testing.T) {
	dir := Dir(t.TempDir())
	unlock, err := dir.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dir.Lock(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	unlock()
	again, err := dir.Lock(t.Context(), "a") // the one who gave up must not keep it
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// TestLockEndsWithItsProcess has another process take a lock and be killed.
func TestLockEndsWithItsProcess(t *testing.T) {
	if path := os.Getenv("LOCK_TEST_DIR"); path != "" {
		if _, err := Dir(path).Lock(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("held\n")
		select {}
	}
	path := t.TempDir()
	holder := exec.Command(os.Args[0], "-test.run=^TestLockEndsWithItsProcess$")
	holder.Env = append(os.Environ(), "LOCK_TEST_DIR="+path)
	says, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(says).ReadString('\n'); line != "held\n" {
		t.Fatalf("holder says %q, %v", line, err)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	unlock, err := Dir(path).Lock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := Dir(path).Sweep(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(path); len(left) != 1 || left[0].Name() != "b" {
		t.Errorf("after the sweep: %v", left)
	}
}
