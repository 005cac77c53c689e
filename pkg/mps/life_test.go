package mps_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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
