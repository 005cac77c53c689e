package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

const function = "0000:1a:00.0"

// node is a host with one NIC and one container, in network namespaces of this machine's
// kernel.
type node struct {
	*kerneltest.Real
	roots
	sysfs, lock, pod string
	home             machine.NICHome
}

func newNode(t testing.TB) *node {
	t.Helper()
	k := kerneltest.NewReal(t)
	n := &node{Real: k, sysfs: t.TempDir(), lock: filepath.Join(t.TempDir(), rdma.LockName), pod: k.Namespace("pod")}
	n.roots = roots{proc: k.ProcRoot, network: k.HostNamespace}
	k.AddVeth(k.HostNamespace, "eth1", "b8:3f:d2:00:00:01")
	device := filepath.Join(n.sysfs, "bus/pci/devices", function)
	for path, content := range map[string]string{"class": "0x020000", "vendor": "0x15b3", "net/eth1/speed": "400000"} {
		write(t, filepath.Join(device, path), content)
	}
	if err := os.Symlink("../../drivers/mlx5_core", filepath.Join(device, "driver")); err != nil {
		t.Fatal(err)
	}
	n.process(t, n.pod)
	address, err := machine.ParseAddress(function)
	if err != nil {
		t.Fatal(err)
	}
	n.home, err = rdma.New(rdma.Options{SysfsRoot: n.sysfs, Kernel: k}).NICHome(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// process puts the container's process into a network namespace.
func (n *node) process(t testing.TB, namespace string) {
	t.Helper()
	file := filepath.Join(n.proc, fmt.Sprint(pid), "ns/net")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(file)
	if err := os.Symlink(namespace, file); err != nil {
		t.Fatal(err)
	}
}

// run runs the hook as the container runtime does.
func (n *node) run(t *testing.T, state, order string) error {
	t.Helper()
	root := newRoot(n.roots)
	root.SetIn(strings.NewReader(state))
	root.SetArgs([]string{"nic", "--sysfs-root=" + n.sysfs, "--lock=" + n.lock, "--order=" + order})
	return root.ExecuteContext(t.Context())
}

func (n *node) order(t testing.TB, change func(*hardware.NICMove)) string {
	t.Helper()
	order := hardware.NICMove{Home: n.home, Name: "net1", MTU: 1400, Addresses: []string{"10.9.0.1/24"}}
	if change != nil {
		change(&order)
	}
	text, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// interfaces are the names in a namespace of those that are no test's wire.
func (n *node) interfaces(t testing.TB, path string) []string {
	t.Helper()
	in, err := n.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	links, err := in.Links()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range links {
		if l.Kind != "veth" || len(l.Name) > 12 {
			continue
		}
		names = append(names, fmt.Sprintf("%s up=%t mtu=%d", l.Name, l.Up, l.MTU))
	}
	return names
}

// TestNIC: for a container, the Pod's next one, and one on the host's network.
func TestNIC(t *testing.T) {
	n := newNode(t)
	for range 2 {
		if err := n.run(t, state, n.order(t, nil)); err != nil {
			t.Fatal(err)
		}
		if got := n.interfaces(t, n.pod); !slices.Equal(got, []string{"net1 up=true mtu=1400"}) {
			t.Errorf("in the Pod there are %q", got)
		}
	}
	if err := rdma.New(rdma.Options{SysfsRoot: n.sysfs, Kernel: n.Real}).BringHome(t.Context(), n.home); err != nil {
		t.Fatal(err)
	}
	n.process(t, n.HostNamespace)
	if err := n.run(t, state, n.order(t, nil)); err != nil {
		t.Fatal(err)
	}
	if got := n.interfaces(t, n.HostNamespace); !slices.Equal(got, []string{"eth1 up=false mtu=1500"}) {
		t.Errorf("on the host there are %q", got)
	}
}

// TestNICRefused: each message names the cure, and where it can the NIC; nothing is moved.
func TestNICRefused(t *testing.T) {
	n := newNode(t)
	n.AddVeth(n.pod, "eth0", "b8:3f:d2:00:00:77")
	tests := []struct {
		name, state, order string
		class              error
		words              []string
	}{
		{"no state", "", n.order(t, nil), failure.Invalid, []string{"as an OCI hook"}},
		{"no order", state, "", failure.Invalid, []string{"--order", "same version"}},
		{"half an order", state, `{"home": {`, failure.Invalid, []string{"--order", "same version"}},
		{"an order of tomorrow", state, `{"home": {"address": "0000:1a:00.0"}, "vlan": 7}`, failure.Invalid, []string{"--order", "vlan", "same version"}},
		{"process is gone", strings.Replace(state, "4711", "4712", 1), n.order(t, nil), failure.Absent, []string{function, "network namespace"}},
		{"name taken", state, n.order(t, func(o *hardware.NICMove) { o.Name = "eth0" }), failure.Conflict, []string{function, "eth0", "interfaceName"}},
		{"name too long", state, n.order(t, func(o *hardware.NICMove) { o.Name = "sixteen-letters-" }), failure.Invalid, []string{function, "15 bytes"}},
		{"NIC is gone", state, n.order(t, func(o *hardware.NICMove) { o.Home.Address.Bus = 9 }), failure.Absent, []string{"0000:09:00.0", "not there"}},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			err := n.run(t, tt.state, tt.order)
			if !errors.Is(err, tt.class) {
				t.Fatalf("%v", err)
			}
			for _, word := range tt.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%v: without %q", err, word)
				}
			}
			if got := n.interfaces(t, n.HostNamespace); !slices.Equal(got, []string{"eth1 up=false mtu=1500"}) {
				t.Errorf("on the host there are %q", got)
			}
		})
	}
}
