package mps_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

// elsewhere is a control group that is not this process's.
func elsewhere(t *testing.T) string {
	t.Helper()
	for _, parent := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} { // versions 1 and 2
		if _, err := os.Stat(filepath.Join(parent, "cgroup.procs")); err != nil {
			continue
		}
		if dir, err := os.MkdirTemp(parent, "mps-test-"); err == nil {
			t.Cleanup(func() {
				patiencetest.Until(t, "the control group is empty", func() bool { return os.Remove(dir) == nil })
			})
			return dir
		}
	}
	t.Skip("no control group can be made")
	return ""
}

// TestStranger: a process of another container keeps no set from its end, whatever its
// environment says, and lives on.
func TestStranger(t *testing.T) {
	group := elsewhere(t)
	w := newWorld(t, "dgx-h100")
	devices := w.uuids(0)
	dir := filepath.Dir(w.start(t, devices).Pipe)
	stranger := exec.Command("/bin/sh", "-c", `read go; exec sleep 60`)
	stranger.Env = []string{"DOVETAIL_MPS=" + dir, "CUDA_MPS_PIPE_DIRECTORY=" + filepath.Join(dir, "pipe")}
	input, err := stranger.StdinPipe()
	if err := errors.Join(err, stranger.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = stranger.Process.Kill(), stranger.Wait() }()
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(stranger.Process.Pid)), 0); err != nil {
		t.Skipf("no process can be put into a control group: %v", err)
	}
	if err := w.StopMPS(t.Context(), devices); err != nil {
		t.Error(err)
	}
	w.nothing(t)
	if _, err := input.Write([]byte("go\n")); err != nil {
		t.Errorf("the stranger was killed: %v", err)
	}
}
