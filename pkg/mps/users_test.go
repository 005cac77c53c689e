package mps_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// readable copies a program to where every user may run it.
func readable(t testing.TB, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mps-program")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	data, err := os.ReadFile(program)
	to := filepath.Join(dir, "program")
	if err := errors.Join(err, os.Chmod(dir, 0o755), os.WriteFile(to, data, 0o755)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestReadOnlyPipe: clients connect where the pipe directory is mounted as containers
// have it.
func TestReadOnlyPipe(t *testing.T) {
	for _, machine := range []string{"dgx-h100", "mps-v3"} {
		t.Run(machine, func(t *testing.T) {
			w := newWorld(t, machine)
			pipe := w.start(t, w.uuids(0)).Pipe
			mounted := filepath.Join(t.TempDir(), "p")
			if err := errors.Join(os.Mkdir(mounted, 0o755), syscall.Mount(pipe, mounted, "", syscall.MS_BIND, "")); err != nil {
				t.Skipf("no bind mount: %v", err)
			}
			defer func() { _ = syscall.Unmount(mounted, syscall.MNT_DETACH) }()
			if err := syscall.Mount("", mounted, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(mounted, "control")); !errors.Is(err, syscall.EROFS) {
				t.Errorf("removing the socket: %v", err)
			}
			c := newClient(t, mounted, 0)
			if l := c.do(t, "allocate 1G"); c.Error+l.Error != "" {
				t.Errorf("%+v, %+v", c.Line, l)
			}
		})
	}
}

// TestUsers: who is not root is a client like any other, and cannot touch the daemon's
// directories.
func TestUsers(t *testing.T) {
	w := newWorld(t, "dgx-h100")
	if err := os.Chmod(w.options.Dir, 0o711); err != nil {
		t.Fatal(err)
	}
	d := w.start(t, w.uuids(0))
	for _, uid := range []uint32{0, 65534, 1000} {
		if c := newClient(t, d.Pipe, uid); c.Error != "" {
			t.Errorf("user %d: %+v", uid, c.Line)
		}
	}
	for dir, mode := range map[string]os.FileMode{
		"..": 0o711, "": 0o755, "../shm": 0o777 | os.ModeSticky, "../log": 0o700, "../set.json": 0o600,
	} {
		info, err := os.Stat(filepath.Join(d.Pipe, dir))
		if err != nil || info.Mode()&(os.ModePerm|os.ModeSticky) != mode {
			t.Errorf("%q: %v, %v, want %v", dir, info.Mode(), err, mode)
		}
	}
}

// TestOldDriver: one user at a time is better than none.
func TestOldDriver(t *testing.T) {
	w := newWorld(t, "t4")
	d := w.start(t, w.uuids(0))
	if c := newClient(t, d.Pipe, 0); c.Error != "" {
		t.Errorf("%+v", c.Line)
	}
	if err := w.StopMPS(t.Context(), w.uuids(0)); err != nil {
		t.Error(err)
	}
	w.nothing(t)
}

// TestMultiUserAfterAccident: what ends at once for another reason is no old driver.
func TestMultiUserAfterAccident(t *testing.T) {
	w := newWorld(t, "dgx-h100")
	script := w.launchBy(t, `[ -e "$0.tried" ] || case "$3" in *multiuser*) : > "$0.tried"; echo "Cannot allocate memory" >&2; exit 1 ;; esac`)
	w.start(t, w.uuids(0))
	if _, err := os.Stat(script + ".tried"); err != nil {
		t.Errorf("the accident did not happen: %v", err)
	}
	commandLine, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", w.control(t, w.uuids(0))))
	if err != nil || !strings.Contains(string(commandLine), "multiuser") {
		t.Errorf("%q, %v", commandLine, err)
	}
}
