package state

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestNew(t *testing.T) {
	for _, bad := range []string{"", "A", "a/b", "..", "-a", strings.Repeat("a", 33)} {
		if _, err := New(bad, ""); err == nil {
			t.Errorf("name %q was taken", bad)
		}
	}
	c, err := New("a-1", "")
	if err != nil || c.Dir != Base+"/a-1" || c.Group() != "dovetail-a-1" {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := New("a", "/"+strings.Repeat("x", 80)); err == nil {
		t.Error("a state directory was taken in which no socket fits")
	}
}

func TestNodes(t *testing.T) {
	for _, bad := range []int{-1, 0, MaxNodes + 1} {
		if _, err := NodeNames(bad); err == nil {
			t.Errorf("%d nodes", bad)
		}
	}
	names, _ := NodeNames(2)
	c := Cluster{Name: "x", Nodes: names}
	if i, err := c.Index("node-2"); i != 2 || err != nil {
		t.Error(i, err)
	}
	if _, err := c.Index("node-3"); err == nil || !strings.Contains(err.Error(), "node-2") {
		t.Errorf("the error should say which nodes there are: %v", err)
	}
}

func TestCreateAndLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	c, _ := New("a", dir)
	if err := c.Load(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	c.Nodes = []string{"node-1"}
	if err := c.Create(); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(); err == nil {
		t.Error("a directory that is in use was taken")
	}
	again, _ := New("a", dir)
	if err := again.Load(); err != nil || len(again.Nodes) != 1 {
		t.Errorf("%+v, %v", again, err)
	}
	other, _ := New("b", dir)
	if err := other.Load(); err == nil {
		t.Error("another cluster's state was taken")
	}
}

func TestRun(t *testing.T) {
	run, err := NewRun(os.Getpid())
	if err != nil || !run.Alive() {
		t.Fatalf("%+v, %v", run, err)
	}
	stale := run
	stale.StartTime = "1"
	if stale.Alive() {
		t.Error("another process with the same number passes for this one")
	}
	stale = run
	stale.Boot = "other"
	if err := stale.Kill(time.Second); err != nil || stale.Alive() {
		t.Error("a process of an earlier boot passes for this one")
	}
}

func TestRunKill(t *testing.T) {
	cmd := exec.Command("cat")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	run, err := NewRun(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Kill(5 * time.Second); err != nil {
		t.Error(err)
	}
	if run.Alive() { // a zombie by now: nobody waited for it
		t.Error("alive")
	}
	_ = cmd.Wait()
}

func TestLock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "d", "lock")
	a, err := LockFile(file, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	waited := false
	if _, err := LockFile(file, 0, func() { waited = true }); err == nil || !waited {
		t.Errorf("locked twice: %v, said so: %t", err, waited)
	}
	a.Unlock()
	b, err := LockFile(file, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Unlock()
}
