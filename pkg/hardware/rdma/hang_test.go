package rdma_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

// TestNICThatHangs: a card whose driver does not answer costs the others nothing, and is
// described again when it does.
func TestNICThatHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nics = rdma.New(rdma.Options{SysfsRoot: w.root, Kernel: w.kernel, Patience: 2 * time.Second})
	w.both(first, "eth1", "mlx5_0", 1)
	const second = "0000:2a:00.0"
	w.both(second, "eth2", "mlx5_1", 2)
	speed := filepath.Join(w.root, "bus/pci/devices", second, "net/eth2/speed")
	must(t, os.Remove(speed))
	must(t, unix.Mkfifo(speed, 0o600)) // who opens it waits for who writes

	for range 2 {
		d := w.describe()
		if len(d.NICs) != 1 || d.NICs[0].Address != at(t, first) || d.NICs[0].Netdevs[0].Speed != 400000 {
			t.Errorf("%+v", d.NICs)
		}
		if len(d.Faults) != 1 || d.Faults[0].Device != second || d.Faults[0].Kind != machine.FaultUnresponsive {
			t.Errorf("%+v", d.Faults)
		}
		if m := d.Faults[0].Message; !strings.Contains(m, "NIC driver's messages") || !strings.Contains(m, "reset the NIC") || strings.Contains(m, "Xid") {
			t.Errorf("what to do: %s", m)
		}
	}
	must(t, os.WriteFile(speed, []byte("400000\n"), 0o600)) // it answers
	must(t, os.Remove(speed))
	must(t, os.WriteFile(speed, []byte("400000\n"), 0o600))
	patiencetest.Until(t, "both NICs answer", func() bool {
		d := w.describe()
		return len(d.NICs) == 2 && len(d.Faults) == 0
	})
}

// TestLookBesideAMove: a NIC that does not answer while it is moved, which takes longer
// than a look, costs the others nothing, and is as it was; when the move hangs, it is a
// fault.
func TestLookBesideAMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const look, change = 1500 * time.Millisecond, 5 * time.Second
	w.nics = rdma.New(rdma.Options{SysfsRoot: w.root, Kernel: w.kernel, Patience: look, ChangePatience: change})
	w.both(first, "eth1", "mlx5_0", 1)
	const second = "0000:2a:00.0"
	w.both(second, "eth2", "mlx5_1", 2)
	w.kernel.AddNamespace(pod)
	before := w.describe()
	home := w.home()
	links, _, _ := w.state(kerneltest.HostPath)
	reached, release := w.kernel.Hang("MoveLink", named(links, "eth1").Index)
	moved := make(chan error, 1)
	go func() { moved <- w.move(hardware.NICMove{Home: home}) }()
	<-reached
	speed := filepath.Join(w.root, "bus/pci/devices", first, "net/eth1/speed")
	must(t, os.Remove(speed))
	must(t, unix.Mkfifo(speed, 0o600)) // who opens it waits for who writes

	if d := w.describe(); !reflect.DeepEqual(d, before) {
		t.Errorf("%+v, want %+v", d, before)
	}
	select {
	case err := <-moved:
		t.Errorf("the look waited for the move: %v", err)
	default:
		if err := <-moved; !errors.Is(err, failure.Busy) {
			t.Errorf("the move: %v", err)
		}
	}
	if d := w.describe(); len(d.NICs) != 1 || len(d.Faults) != 1 || d.Faults[0].Kind != machine.FaultUnresponsive {
		t.Errorf("when the move hangs: %+v", d)
	}
	release()
	must(t, os.WriteFile(speed, []byte("400000\n"), 0o600)) // it answers
	must(t, os.Remove(speed))
	must(t, os.WriteFile(speed, []byte("400000\n"), 0o600))
	patiencetest.Until(t, "the move that hung has ended, and is undone", func() bool { return w.bring(home) == nil })
	w.atHome(home)
}

// TestMoveThatHangs: neither the other NICs nor who asks again waits for it, and when it
// goes on, so does all.
func TestMoveThatHangs(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"file": filepath.Join(t.TempDir(), rdma.LockName), "process": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.nics = rdma.New(rdma.Options{SysfsRoot: w.root, Kernel: w.kernel, ChangePatience: 2 * time.Second, Patience: 2 * time.Second, LockFile: file})
			w.both(first, "eth1", "mlx5_0", 1)
			const second = "0000:2a:00.0"
			w.both(second, "eth2", "mlx5_1", 2)
			w.kernel.AddNamespace(pod)
			home := w.home()
			other, err := w.nics.NICHome(t.Context(), at(t, second))
			must(t, err)
			links, _, _ := w.state(kerneltest.HostPath)
			_, release := w.kernel.Hang("MoveLink", named(links, "eth1").Index)

			for range 2 {
				if err := w.move(hardware.NICMove{Home: home}); !errors.Is(err, failure.Busy) || !strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), "reset the NIC") {
					t.Errorf("%v", err)
				}
			}
			if err := w.bring(home); !errors.Is(err, failure.Busy) {
				t.Errorf("%v", err)
			}
			must(t, w.move(hardware.NICMove{Home: other}))
			must(t, w.bring(other))
			release()
			patiencetest.Until(t, "the NIC comes home", func() bool {
				err := w.bring(home)
				if err != nil && !errors.Is(err, failure.Busy) {
					t.Fatal(err)
				}
				return err == nil
			})
			w.atHome(home)
		})
	}
}
