package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func spareWriter(t *testing.T) Writer {
	t.Helper()
	return Writer{Dir: t.TempDir(), Durable: true, Mode: 0o600, Spares: &Spares{}}
}

func (w Writer) mustWrite(t *testing.T, name, content string) (inode uint64) {
	t.Helper()
	if err := w.Write(name, []byte(content)); err != nil {
		t.Fatal(err)
	}
	got, info, err := w.Read(name)
	if err != nil || string(got) != content {
		t.Fatalf("%s: got %q, %v; want %q", name, got, err, content)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

func (w Writer) mustRemove(t *testing.T, name string) {
	t.Helper()
	if err := w.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Read(name); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s after its removal: %v", name, err)
	}
}

// What was removed is written anew once its removal cannot be undone any more.
func TestSpareIsWrittenOnceItsRemovalIsDurable(t *testing.T) {
	w := spareWriter(t)
	first := w.mustWrite(t, "a", "first, and long")
	w.mustRemove(t, "a")
	if w.mustWrite(t, "b", "second") == first {
		t.Fatal("a power cut would show b's content as a's")
	}
	if got := w.mustWrite(t, "c", "third"); got != first {
		t.Errorf("inode %d, want the spare one, %d", got, first)
	}
	// A name that comes again is another file.
	w.mustRemove(t, "c")
	second := w.mustWrite(t, "c", "fourth")
	w.mustRemove(t, "c")
	if w.mustWrite(t, "d", "fifth") == second {
		t.Error("a power cut would show d's content as c's")
	}
}

func TestSparesThatWereSweptAreNotMissed(t *testing.T) {
	w := spareWriter(t)
	w.mustWrite(t, "a", "first")
	w.mustRemove(t, "a")
	w.mustWrite(t, "b", "second")
	if err := w.Sweep(""); err != nil {
		t.Fatal(err)
	}
	onlyFile(t, w.Dir)
	w.mustWrite(t, "c", "third")
}

// Whoever is started while a file is written has it open, and so locked, for a moment.
func TestSpareThatSomebodyHasIsLeftToHim(t *testing.T) {
	w := spareWriter(t)
	w.mustWrite(t, "a", "first")
	somebody, err := os.OpenFile(filepath.Join(w.Dir, "a"), os.O_RDWR, 0)
	if err != nil || !lock(somebody) {
		t.Fatalf("lock: %v", err)
	}
	defer somebody.Close()
	w.mustRemove(t, "a")
	w.mustWrite(t, "b", "second")
	w.mustRemove(t, "b")
	w.mustWrite(t, "c", "third")
	if content, err := io.ReadAll(somebody); err != nil || string(content) != "first" {
		t.Errorf("he finds %q, %v", content, err)
	}
	entries, err := os.ReadDir(w.Dir)
	if err != nil || len(entries) != 2 { // c, and what was b's
		t.Errorf("left: %v, %v", entries, err)
	}
}

// By inode, size and time of change a reader knows what it has read already. Kernels
// before 6.13 give the same time to all that is written within some milliseconds.
func TestEachWriteHasATimeOfItsOwn(t *testing.T) {
	w := spareWriter(t)
	w.Durable = false // so that it is fast
	times := map[time.Time]bool{}
	for i := range 100 {
		name := fmt.Sprint(i)
		if err := w.Write(name, []byte("content")); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(w.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		times[info.ModTime()] = true
	}
	if len(times) != 100 {
		t.Errorf("100 writes have %d times", len(times))
	}
}

func TestSparesAreFew(t *testing.T) {
	w := spareWriter(t)
	for i := range 2 * mostSpares {
		w.mustWrite(t, fmt.Sprint(i), "content")
	}
	for i := range 2 * mostSpares {
		w.mustRemove(t, fmt.Sprint(i))
	}
	entries, err := os.ReadDir(w.Dir)
	if err != nil || len(entries) != mostSpares {
		t.Errorf("%d files are left, %v; want %d", len(entries), err, mostSpares)
	}
}

func TestSpareKeepsNothingWhenItsWriteFails(t *testing.T) {
	w := spareWriter(t)
	w.mustWrite(t, "a", "first")
	w.mustRemove(t, "a")
	w.mustWrite(t, "b", "second")
	if err := os.MkdirAll(filepath.Join(w.Dir, "c", "in-the-way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := w.Write("c", []byte("third")); err == nil {
		t.Fatal("no error")
	}
	entries, err := os.ReadDir(w.Dir)
	if err != nil || len(entries) != 2 { // b, and what is in the way
		t.Errorf("left: %v, %v", entries, err)
	}
}

// A reader never finds under one name what was written for another.
func TestReadIsOfItsName(t *testing.T) {
	w := spareWriter(t)
	w.Durable = false // so that it goes round more often
	names := []string{"a", "b", "c"}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for _, name := range names {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				content, _, err := w.Read(name)
				switch {
				case errors.Is(err, fs.ErrNotExist):
				case err != nil, string(content) != strings.Repeat(name, 4000):
					t.Errorf("%s: %.20q…, %v", name, content, err)
					return
				}
			}
		})
	}
	for i := range 3000 {
		name := names[i%len(names)]
		if err := w.Write(name, []byte(strings.Repeat(name, 4000))); err != nil {
			t.Fatal(err)
		}
		if err := w.Remove(name); err != nil {
			t.Fatal(err)
		}
		w.Spares.release(w.Spares.taken()) // as a sync of the directory does
	}
	close(done)
	readers.Wait()
}

func TestCloseLeavesNoSpares(t *testing.T) {
	w := spareWriter(t)
	for _, name := range []string{"a", "b"} {
		w.mustWrite(t, name, "gone")
		w.mustRemove(t, name)
	}
	w.mustWrite(t, "c", "stays") // b is free now, or a
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.mustRemove(t, "c")
	w.mustWrite(t, "d", "stays")
	onlyFile(t, w.Dir)
}

// On a full disk what was removed makes place for what comes, as if it were removed.
func TestSparesGiveWayOnAFullDisk(t *testing.T) {
	w := spareWriter(t)
	if err := syscall.Mount("none", w.Dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(w.Dir, 0); err != nil {
			t.Error(err)
		}
	}()
	w.mustWrite(t, "a", "gone")
	w.mustWrite(t, "b", "stays")
	if err := os.WriteFile(filepath.Join(w.Dir, "ballast"), make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if err := w.Write("c", []byte("no place")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	w.mustRemove(t, "a")
	w.mustWrite(t, "c", "in its place")
	if content, _, err := w.Read("b"); err != nil || string(content) != "stays" {
		t.Errorf("b: %q, %v", content, err)
	}
}
