package rdma_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func TestHome(t *testing.T) {
	w, home := withPod(t)
	want := machine.NICHome{
		Address: at(t, first), RDMA: "mlx5_0", DCB: lossless(),
		Netdevs: []machine.NetdevHome{{
			Name: "eth1", MAC: macOf(1), MTU: 4200, Up: true, Addresses: []string{"10.1.0.1/24", "fd00:1::1/64"},
			Sysctls: map[string]int{"ipv4/conf/send_redirects": 1, "ipv6/conf/accept_ra": 1},
			Routes:  []machine.Route{{To: "10.100.0.0/16", Via: "10.1.0.254", Metric: 1}, {To: "0.0.0.0/0", Via: "10.1.0.254", Table: 101}},
		}},
	}
	if !reflect.DeepEqual(home, want) {
		t.Errorf("got\n%+v, want\n%+v", home, want)
	}
	w.kernel.SetExclusive(true)
	if !w.home().RDMAMoves {
		t.Error("in exclusive mode the RDMA device moves")
	}
}

// An interface that is renamed while it is looked at is known by its index.
func TestHomeOfARenamedInterface(t *testing.T) {
	w, home := withPod(t)
	links, _, _ := w.state(kerneltest.HostPath)
	functions := filepath.Join(w.root, "bus/pci/devices", first, "net")
	must(t, os.Rename(filepath.Join(functions, "eth1"), filepath.Join(functions, "rail1")))
	w.write("class/net/rail1/ifindex", strconv.Itoa(named(links, "eth1").Index))
	home.Netdevs[0].Name = "rail1"
	if now := w.home(); !reflect.DeepEqual(now.Netdevs, home.Netdevs) {
		t.Errorf("got\n%+v, want\n%+v", now.Netdevs, home.Netdevs)
	}
}

// A container that starts when its claim has been released takes the NIC from nobody.
func TestReleasedMeanwhile(t *testing.T) {
	w, home := withPod(t)
	file := filepath.Join(t.TempDir(), "claim.json")
	must(t, os.WriteFile(file, nil, 0o600))
	order := hardware.NICMove{Home: home, While: file}
	must(t, w.move(order))
	must(t, w.nics.BringHome(t.Context(), home))
	must(t, os.Remove(file))
	if err := w.move(order); !errors.Is(err, failure.Conflict) || !strings.Contains(err.Error(), "released") {
		t.Errorf("%v", err)
	}
	w.atHome(home)
}

func TestNoHome(t *testing.T) {
	tests := []struct {
		name  string
		make  func(w *world)
		class error
		words string
	}{
		{"gone", func(w *world) { w.remove(first) }, failure.Absent, first},
		{"away", func(w *world) { w.kernel.RemoveLink(kerneltest.HostPath, "eth1") }, failure.Conflict, "another network namespace"},
		{"driver that is being unloaded", func(w *world) {
			must(w.t, os.Remove(filepath.Join(w.root, "bus/pci/devices", first, "driver")))
			w.kernel.RemoveLink(kerneltest.HostPath, "eth1")
		}, failure.Unreachable, "no driver is bound to it"},
		{"VLAN on top", func(w *world) {
			w.onHost(func(host kernel.Namespace) {
				links, err := host.Links()
				must(w.t, err)
				w.kernel.AddLink(kerneltest.HostPath, kernel.Link{Name: "eth1.7", Kind: "vlan", Lower: named(links, "eth1").Index})
			})
		}, failure.Conflict, "eth1.7 is on top of eth1"},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			w, _ := withPod(t)
			tt.make(w)
			if _, err := w.nics.NICHome(t.Context(), at(t, first)); !errors.Is(err, tt.class) || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("%v", err)
			}
		})
	}
}
