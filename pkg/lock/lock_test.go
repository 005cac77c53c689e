package lock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func TestLockExcludes(t *testing.T) {
	file := inTemp(t)
	counter := 0
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				unlock, err := file.Lock(t.Context(), "gpu-1b-00", "claim-1")
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
	if info, err := os.Stat(string(file)); err != nil || info.Size() != 0 {
		t.Errorf("the file should stay, empty: %v, %v", info, err)
	}
}

func TestLockOfOthersDoesNotWait(t *testing.T) {
	file := inTemp(t)
	unlock, err := file.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	other, err := file.Lock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
}

func TestLockTakesDuplicatesOnce(t *testing.T) {
	unlock, err := inTemp(t).Lock(t.Context(), "a", "b", "a")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestLockHonoursContext(t *testing.T) {
	file := inTemp(t)
	unlock, err := file.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := file.Lock(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	unlock()
	again, err := file.Lock(t.Context(), "a") // the one who gave up must not keep it
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// TestLockEndsWithItsProcess has another process take a lock and be killed.
func TestLockEndsWithItsProcess(t *testing.T) {
	if path := os.Getenv("LOCK_TEST_FILE"); path != "" {
		if _, err := File(path).Lock(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("held\n")
		select {}
	}
	file := inTemp(t)
	holder := exec.Command(os.Args[0], "-test.run=^TestLockEndsWithItsProcess$")
	holder.Env = append(os.Environ(), "LOCK_TEST_FILE="+string(file))
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
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := file.Lock(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("while another process holds it: error %v", err)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	unlock, err := file.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// TestPlacesDiffer: names that are alike must not share a lock.
func TestPlacesDiffer(t *testing.T) {
	seen := map[int64]string{}
	for i := range 256 {
		for _, name := range []string{fmt.Sprintf("gpu-%02x-00", i), fmt.Sprintf("claim-%08x-0000-4000-8000-000000000000", i)} {
			p := place(name)
			if p < 0 || seen[p] != "" {
				t.Errorf("%s is at %d, as is %q", name, p, seen[p])
			}
			seen[p] = name
		}
	}
}

func BenchmarkLock(b *testing.B) {
	file := File(filepath.Join(b.TempDir(), "lock"))
	for b.Loop() {
		unlock, err := file.Lock(b.Context(), "gpu-1b-00")
		if err != nil {
			b.Fatal(err)
		}
		unlock()
	}
}

func inTemp(t *testing.T) File { return File(filepath.Join(t.TempDir(), "lock")) }

// Who waits for b in vain gives a back at once, not when b comes.
func TestGivingUpGivesBack(t *testing.T) {
	file := File(filepath.Join(t.TempDir(), "lock"))
	a, b := "a", "b"
	if place(a) > place(b) { // the order in which they are taken
		a, b = b, a
	}
	unlock, err := file.Lock(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := file.Lock(ctx, a, b); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v", err)
	}
	other, err := file.Lock(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	other()
}

func TestNothingIsTakenForACallThatIsOver(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := File(filepath.Join(t.TempDir(), "lock")).Lock(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
