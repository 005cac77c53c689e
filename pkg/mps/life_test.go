package mps_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

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
	if e := w.watch(t).await(hardware.MPSRestarted); len(e.Devices) != 1 || e.Devices[0] != devices[0] {
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
	patiencetest.Until(t, "namespace a goes and b-c comes", func() bool {
		_, a := os.Stat(filepath.Join(pipe, "control"))
		_, b := os.Stat(filepath.Join(filepath.Dir(pipe), "b_c", "control"))
		return a != nil && b == nil
	})
	if again, err := w.MakeNamespace(t.Context(), devices, "a", hardware.MPSLimits{}); err != nil || again != pipe {
		t.Errorf("%s, %v", again, err)
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
	if e := events.await(hardware.MPSFailed); !strings.Contains(e.Message, "nvidia-cuda-mps-control") {
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
	events.await(hardware.MPSRestarted)
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
				if e := events.await(hardware.MPSFaulted); e.Devices[0] != devices[0] {
					t.Errorf("%+v", e)
				}
				if err := bystander.command.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				patiencetest.Until(t, "a new client is let in", func() bool {
					c := newClient(t, d.Pipe, 0)
					c.end()
					return c.Error == ""
				})
				w.LookNow()
			}
		})
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

// TestAtOnceOverAll: shares that arrive at once over eight GPUs have one daemon started
// for each, once.
func TestAtOnceOverAll(t *testing.T) {
	w := newWorld(t, "dgx-h100")
	for range 3 {
		before, err := w.machine.State()
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 8 * 48 {
			all.Go(func() {
				if _, err := w.StartMPS(t.Context(), w.uuids(i%8)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		after, err := w.machine.State()
		if n := after.Runs["nvidia-cuda-mps-control"] - before.Runs["nvidia-cuda-mps-control"]; n != 8 || err != nil {
			t.Errorf("%d control daemons were started, %v, want 8", n, err)
		}
		for gpu := range 8 {
			all.Go(func() {
				if err := w.StopMPS(t.Context(), w.uuids(gpu)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		w.nothing(t)
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
