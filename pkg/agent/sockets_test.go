package agent

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestPeersAreSeenAtOnce(t *testing.T) {
	dir, err := os.MkdirTemp("", "peers") // sockets want short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	listen := func(name string) net.Listener {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	p := &peers{pluginDir: dir}
	alone := func(want bool, when string) {
		t.Helper()
		for range 2 {
			if p.Alone() != want {
				t.Errorf("%s: alone %v", when, !want)
			}
		}
	}
	own := listen("dra-1.sock")
	defer own.Close()
	alone(true, "a directory that has just changed")
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir, long, long); err != nil {
		t.Fatal(err)
	}
	alone(true, "a directory as it was for long")
	if p.unchanged.IsZero() {
		t.Error("it is looked through each time")
	}
	other := listen("dra-2.sock")
	alone(false, "another agent")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	alone(true, "after it")

	// One that was killed leaves its socket.
	killed := listen("dra-3.sock")
	killed.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	alone(true, "after one that was killed")
	if _, err := os.Stat(filepath.Join(dir, "dra-3.sock")); !os.IsNotExist(err) {
		t.Errorf("the socket of one that was killed: %v", err)
	}
}
