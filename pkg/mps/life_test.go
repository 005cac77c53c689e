package mps_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/mps"
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

func inode(t testing.TB, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// TestKilled: daemons, clients and namespaces live on while their keeper is killed, and
// are found again.
func TestKilled(t *testing.T) {
	for machine, protocol := range map[string]int{"dgx-h100": 2, "mps-v3": 3} {
		t.Run(machine, func(t *testing.T) {
			w := newWorld(t, machine)
			devices := w.uuids(1, 0)
			before := w.start(t, devices)
			pipe := before.Pipe
			limits := hardware.MPSLimits{ThreadPercentage: 50, Memory: map[string]uint64{devices[0]: 2 << 30}}
			if protocol == 3 {
				var err error
				if pipe, err = w.MakeNamespace(t.Context(), devices, "a-b", limits); err != nil {
					t.Fatal(err)
				}
			}
			c := newClient(t, pipe, 0)
			pid := w.control(t, devices)
			w.reopen(t)
			if after := w.start(t, devices); after != before || after.Protocol != protocol {
				t.Errorf("%+v, before %+v", after, before)
			}
			if now := w.control(t, devices); now != pid || pid == 0 {
				t.Errorf("the control daemon is process %d, was %d", now, pid)
			}
			if l := c.do(t, "allocate 1G"); l.Error != "" {
				t.Errorf("the client: %+v", l)
			}
			if protocol == 3 {
				if again, err := w.MakeNamespace(t.Context(), devices, "a-b", limits); err != nil || again != pipe {
					t.Errorf("%s, %v", again, err)
				}
				if l := c.do(t, "allocate 2G"); l.Error == "" {
					t.Error("the namespace's memory limit is gone")
				}
			}
			if _, err := w.StartMPS(t.Context(), devices[:1]); !errors.Is(err, failure.Conflict) {
				t.Errorf("one of the devices again: %v", err)
			}
			c.end()
			if err := w.StopMPS(t.Context(), devices); err != nil {
				t.Error(err)
			}
			w.nothing(t)
		})
	}
}

// TestDiedMeanwhile: a daemon that died while nobody kept it is started again, in the
// same directories, with its namespaces, and the next who watches is told.
func TestDiedMeanwhile(t *testing.T) {
	w := newWorld(t, "mps-v3")
	devices := w.uuids(0)
	before := w.start(t, devices)
	limits := hardware.MPSLimits{ThreadPercentage: 50, Memory: map[string]uint64{devices[0]: 2 << 30}}
	pipe, err := w.MakeNamespace(t.Context(), devices, "a-b", limits)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.MakeNamespace(t.Context(), devices, "removed-meanwhile", limits); err != nil {
		t.Fatal(err)
	}
	c, was := newClient(t, pipe, 0), inode(t, pipe)
	w.Close()
	w.crash(t, devices)
	w.open(t)
	if e := await(t, w.watch(t), hardware.MPSRestarted); len(e.Devices) != 1 || e.Devices[0] != devices[0] {
		t.Errorf("%+v", e)
	}
	if after := w.start(t, devices); after != before {
		t.Errorf("%+v, before %+v", after, before)
	}
	if l := c.next(t); !l.Ended {
		t.Errorf("the client of the daemon that died: %+v", l)
	}
	if now := inode(t, pipe); now != was {
		t.Error("the namespace's directory is another: containers that have it mounted have lost it")
	}
	c = newClient(t, pipe, 0)
	if l := c.do(t, "allocate 3G"); l.Error == "" {
		t.Error("the namespace's memory limit is gone")
	}
	c.end()
	if err := w.StopMPS(t.Context(), devices); err != nil {
		t.Error(err)
	}
	w.nothing(t)
}

// TestNamespacesMended: a namespace that was made just before the end of the keeper,
// and not recorded, goes; one that went is made again.
func TestNamespacesMended(t *testing.T) {
	w := newWorld(t, "mps-v3")
	devices := w.uuids(0)
	w.start(t, devices)
	pipe, err := w.MakeNamespace(t.Context(), devices, "a", hardware.MPSLimits{})
	if err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(pipe))), "set.json")
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := os.WriteFile(record, []byte(strings.Replace(string(data), `"a"`, `"b-c"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.open(t)
	until(t, "namespace a goes and b-c comes", func() bool {
		_, a := os.Stat(filepath.Join(pipe, "control"))
		_, b := os.Stat(filepath.Join(filepath.Dir(pipe), "b_c", "control"))
		return a != nil && b == nil
	})
	if again, err := w.MakeNamespace(t.Context(), devices, "a", hardware.MPSLimits{}); err != nil || again != pipe {
		t.Errorf("%s, %v", again, err)
	}
}

// TestEarlierBoot: what is of an earlier boot, half made or half removed, goes.
func TestEarlierBoot(t *testing.T) {
	w := newWorld(t, "dgx-h100")
	c := newClient(t, w.start(t, w.uuids(0)).Pipe, 0)
	half := filepath.Join(w.options.Dir, "0123456789ab")
	if err := errors.Join(os.MkdirAll(filepath.Join(half, "pipe"), 0o755), os.WriteFile(filepath.Join(half, "set.json"), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	w.options.BootID = "next"
	w.open(t)
	w.nothing(t)
	if l := c.next(t); !l.Ended {
		t.Errorf("the client: %+v", l)
	}
	w.start(t, w.uuids(0))
}

// TestLeftoverThatStays: what cannot be removed is no set to start beside, and goes once
// it can.
func TestLeftoverThatStays(t *testing.T) {
	for name, then := range map[string]func(w *world) error{
		"start": func(w *world) error { _, err := w.StartMPS(t.Context(), w.uuids(0)); return err },
		"stop":  func(w *world) error { return w.StopMPS(t.Context(), w.uuids(0)) },
	} {
		for _, readable := range []bool{true, false} {
			w := newWorld(t, "dgx-h100")
			pipe := w.start(t, w.uuids(0)).Pipe
			w.Close()
			if !readable {
				if err := os.WriteFile(filepath.Join(pipe, "../set.json"), []byte("{"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := syscall.Mount("none", pipe, "tmpfs", 0, ""); err != nil {
				t.Skipf("no tmpfs: %v", err)
			}
			w.options.BootID = "next"
			var err error
			if w.Manager, err = mps.New(w.options); !errors.Is(err, syscall.EBUSY) {
				t.Errorf("%s, %t: found again: %v", name, readable, err)
			}
			if err := then(w); !errors.Is(err, syscall.EBUSY) {
				t.Errorf("%s, %t: %v", name, readable, err)
			}
			if err := syscall.Unmount(pipe, 0); err != nil {
				t.Fatal(err)
			}
			if err := then(w); err != nil {
				t.Errorf("%s, %t, once it can be removed: %v", name, readable, err)
			}
			if err := w.StopMPS(t.Context(), w.uuids(0)); err != nil {
				t.Error(err)
			}
			w.nothing(t)
		}
	}
}

// TestStopWithClients: they are told, and nothing is left.
func TestStopWithClients(t *testing.T) {
	for _, machine := range []string{"dgx-h100", "mps-v3"} {
		t.Run(machine, func(t *testing.T) {
			w := newWorld(t, machine)
			devices := w.uuids(0)
			c := newClient(t, w.start(t, devices).Pipe, 0, "-allocate", "1G")
			if err := w.StopMPS(t.Context(), devices); err != nil {
				t.Fatal(err)
			}
			if l := c.next(t); !l.Ended {
				t.Errorf("the client: %+v", l)
			}
			w.nothing(t)
		})
	}
}

// TestServersOutliveDaemon: servers go with the set, though their daemon died and
// cannot be started again.
func TestServersOutliveDaemon(t *testing.T) {
	w := newWorld(t, "dgx-h100")
	devices := w.uuids(0)
	d := w.start(t, devices)
	c := newClient(t, d.Pipe, 0)
	program := filepath.Join(w.machine.Root(), "usr/bin/nvidia-cuda-mps-control")
	if err := os.Rename(program, program+".away"); err != nil {
		t.Fatal(err)
	}
	events := w.watch(t)
	w.crash(t, devices)
	if e := await(t, events, hardware.MPSFailed); !strings.Contains(e.Message, "nvidia-cuda-mps-control") {
		t.Errorf("%+v", e)
	}
	if _, err := w.StartMPS(t.Context(), devices); !errors.Is(err, failure.Unreachable) {
		t.Errorf("%v, want failure.Unreachable", err)
	}
	if _, err := os.Lstat(d.Shm); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s, which another process may lead elsewhere: %v", d.Shm, err)
	}
	if l := c.next(t); !l.Ended {
		t.Errorf("the client: %+v", l)
	}
	if err := os.Rename(program+".away", program); err != nil {
		t.Fatal(err)
	}
	await(t, events, hardware.MPSRestarted)
	if err := w.StopMPS(t.Context(), devices); err != nil {
		t.Error(err)
	}
	w.nothing(t)
}

// TestFault: a client that does not end keeps its server in state FAULT.
func TestFault(t *testing.T) {
	for _, machine := range []string{"dgx-h100", "mps-v3"} {
		t.Run(machine, func(t *testing.T) {
			w := newWorld(t, machine)
			devices := w.uuids(0)
			d, events := w.start(t, devices), w.watch(t)
			for i := range 2 {
				bystander, faulty := newClient(t, d.Pipe, 0), newClient(t, d.Pipe, 0)
				bystander.freeze(t)
				if l := faulty.do(t, "fault"); bystander.Error+faulty.Error != "" || l.Error != "CUDA_ERROR_LAUNCH_FAILED" {
					t.Errorf("the clients: %+v, %+v, then %+v", bystander.Line, faulty.Line, l)
				}
				if i > 0 {
					w.LookNow()
				}
				if e := await(t, events, hardware.MPSFaulted); e.Devices[0] != devices[0] {
					t.Errorf("%+v", e)
				}
				if err := bystander.command.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				until(t, "a new client is let in", func() bool {
					c := newClient(t, d.Pipe, 0)
					c.end()
					return c.Error == ""
				})
				w.LookNow()
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
	w.Close()
	script := filepath.Join(t.TempDir(), "launcher")
	text := `#!/bin/sh
[ -e "$0.tried" ] || case "$3" in *multiuser*) : > "$0.tried"; echo "Cannot allocate memory" >&2; exit 1 ;; esac
exec "$@"
`
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	w.options.Launcher = []string{script, self(t), launcher}
	w.open(t)
	w.start(t, w.uuids(0))
	if _, err := os.Stat(script + ".tried"); err != nil {
		t.Errorf("the accident did not happen: %v", err)
	}
	commandLine, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", w.control(t, w.uuids(0))))
	if err != nil || !strings.Contains(string(commandLine), "multiuser") {
		t.Errorf("%q, %v", commandLine, err)
	}
}

// TestAtOnce: of 48 that ask at once, one starts the daemon; and where it cannot be
// started, all are told and nothing is left.
func TestAtOnce(t *testing.T) {
	w := newWorld(t, "dgx-h100")
	program := filepath.Join(w.machine.Root(), "usr/bin/nvidia-cuda-mps-control")
	if err := os.Rename(program, program+".away"); err != nil {
		t.Fatal(err)
	}
	for _, works := range []bool{false, true} {
		if works {
			if err := os.Rename(program+".away", program); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(program, []byte("no program"), 0o755); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 48 {
			all.Go(func() {
				if _, err := w.StartMPS(t.Context(), w.uuids(0)); (err == nil) != works {
					t.Errorf("works: %t, %v", works, err)
				}
			})
		}
		all.Wait()
		if !works {
			w.nothing(t)
		}
	}
	state, err := w.machine.State()
	if err != nil || state.Runs["nvidia-cuda-mps-control"] != 1 {
		t.Errorf("control daemons were started: %v, %v", state.Runs, err)
	}
}

// TestRaces: starts and stops of one set and of others that overlap it, at once.
func TestRaces(t *testing.T) {
	w := newWorld(t, "dgx-h100")
	sets := [][]string{w.uuids(0), w.uuids(1), w.uuids(0, 1), w.uuids(2)}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for j := range 4 {
				devices := sets[(i+j)%len(sets)]
				if _, err := w.StartMPS(t.Context(), devices); err != nil && !errors.Is(err, failure.Conflict) {
					t.Error(err)
				}
				if err := w.StopMPS(t.Context(), devices); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	w.nothing(t)
	w.start(t, sets[2])
}

// TestCallerGone: a start whose caller's time is over comes to its end.
func TestCallerGone(t *testing.T) {
	w := newWorld(t, "dgx-h100")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		_, err := w.StartMPS(ctx, w.uuids(0))
		if err == nil {
			break // it was answered from memory
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if err := w.StopMPS(t.Context(), w.uuids(0)); err != nil {
		t.Error(err)
	}
	w.nothing(t)
}

// TestFullDisk: nothing is left of what could not be written, and what runs can be
// stopped.
func TestFullDisk(t *testing.T) {
	w := newWorld(t, "dgx-h100")
	w.Close()
	if err := syscall.Mount("none", w.options.Dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	defer func() {
		w.Close()
		killAll(t, w.options.Dir)
		if err := syscall.Unmount(w.options.Dir, 0); err != nil {
			t.Error(err)
		}
	}()
	w.open(t)
	w.start(t, w.uuids(0))
	ballast := filepath.Join(w.options.Dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	if _, err := w.StartMPS(t.Context(), w.uuids(1)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a start on a full disk: %v", err)
	}
	if entries, err := os.ReadDir(w.options.Dir); err != nil || len(entries) != 2 {
		t.Errorf("there are %v, %v", entries, err)
	}
	if err := w.StopMPS(t.Context(), w.uuids(0)); err != nil {
		t.Errorf("a stop on a full disk: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if left := processes(t, w.options.Dir); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
}

// TestNoDaemonNoShm: what a container needs to start is there just as long as the
// control daemon is.
func TestNoDaemonNoShm(t *testing.T) {
	w := newWorld(t, "l40s")
	devices := w.uuids(0)
	d := w.start(t, devices)
	want := inode(t, filepath.Join(filepath.Dir(d.Pipe), "shm"))
	if got := inode(t, d.Shm); got != want {
		t.Errorf("%s is inode %d, want %d", d.Shm, got, want)
	}
	w.Close() // so that nobody starts it again
	killAll(t, w.options.Dir)
	until(t, d.Shm+" is gone", func() bool { // once its parent knows
		_, err := os.Stat(d.Shm)
		return errors.Is(err, os.ErrNotExist)
	})
	w.open(t)
	if again := w.start(t, devices); again != d || inode(t, d.Shm) != want {
		t.Errorf("started again, it is %+v, and was %+v", again, d)
	}
}
