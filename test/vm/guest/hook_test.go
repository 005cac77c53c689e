package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// hook runs the program that ships as a container runtime does: with the container's
// state on standard input (OCI runtime specification, "State"). The error is what it
// says.
func hook(t *testing.T, pid int, order hardware.NICMove) error {
	t.Helper()
	text, err := json.Marshal(order)
	must(t, err)
	cmd := exec.Command("/bin/dovetail-hook", "nic", "--order="+string(text), "--lock="+filepath.Join(os.TempDir(), "lock"))
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"ociVersion": "1.3.0", "id": "c1", "status": "creating", "pid": %d, "bundle": "/bundle"}`, pid))
	var said bytes.Buffer
	cmd.Stderr = &said
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return errors.New(strings.TrimSpace(said.String()))
	}
	must(t, err)
	return nil
}

// orderFor has all that an order can have.
func orderFor(t *testing.T, nics *rdma.NICs, at machine.Address) hardware.NICMove {
	t.Helper()
	home, err := nics.NICHome(t.Context(), at)
	must(t, err)
	order := hardware.NICMove{
		Home: home, Name: "net1", MTU: 4000, Addresses: []string{"10.99.0.1/24", "fd00:99::1/64"},
		Routes: []machine.Route{{To: "10.98.0.0/16", Via: "10.99.0.254"}},
	}
	if home.RDMA != "" {
		order.Nodes = []string{nodeOf(t, home.RDMA)}
	}
	return order
}

// TestHook: the NIC is in the Pod as it was ordered, with an RDMA device that the Pod's
// processes can use; a second container changes nothing; and all comes home.
func TestHook(t *testing.T) {
	inEachMode(t, func(t *testing.T, mode string) {
		nic := lend(t)
		nics := newAdapter(t)
		order := orderFor(t, nics, addresses[nic.Name])
		p := newPod(t)
		for range 2 {
			must(t, hook(t, p.pid, order))
			checkInside(t, p, nic.MAC, order)
		}
		checkRDMAInside(t, p, nic.RDMA)
		if err := open(order.Nodes[0]); (err == nil) != (mode == "shared") {
			t.Errorf("%s on the host: %v", order.Nodes[0], err)
		}
		bring(t, nics, order.Home)
		checkHome(t, nics, order.Home)
	})
}

func checkInside(t *testing.T, p *pod, mac string, order hardware.NICMove) {
	t.Helper()
	p.netlink(t, func(h *netlink.Handle) {
		l, err := h.LinkByName(order.Name)
		must(t, err)
		if a := l.Attrs(); a.HardwareAddr.String() != mac || a.MTU != order.MTU || a.Flags&1 == 0 {
			t.Errorf("in the Pod it is %+v", a)
		}
		list, err := h.AddrList(l, netlink.FAMILY_ALL)
		must(t, err)
		var has []string
		for _, a := range list {
			if !a.IP.IsLinkLocalUnicast() {
				has = append(has, a.IPNet.String())
			}
		}
		if !slices.Equal(has, order.Addresses) {
			t.Errorf("it has addresses %v, want %v", has, order.Addresses)
		}
		eventually(t, func() error { return hasRoute(h, l, order.Routes[0]) })
	})
}

func hasRoute(h *netlink.Handle, l netlink.Link, want machine.Route) error {
	routes, err := h.RouteList(l, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for _, r := range routes {
		if r.Dst != nil && r.Dst.String() == want.To && r.Gw.String() == want.Via {
			return nil
		}
	}
	return fmt.Errorf("no route to %s via %s: %v", want.To, want.Via, routes)
}

// checkRDMAInside: the port is active, the address has its GID, the node can be opened.
func checkRDMAInside(t *testing.T, p *pod, device string) {
	t.Helper()
	eventually(t, func() error { return portIs(p.root(), device, "ACTIVE") })
	eventually(t, func() error { return hasGID(p.root(), device, ipv4GID(10, 99, 0, 1)) })
	node := nodeOf(t, device)
	if err := p.inside(t, func() error { return open(node) }); err != nil {
		t.Errorf("the Pod does not open %s: %v", node, err)
	}
}

// TestHookVF: a virtual function goes and comes as a NIC does.
func TestHookVF(t *testing.T) {
	nics, pf := newAdapter(t), addresses[topology.Near.Name]
	must(t, nics.SetVFs(t.Context(), pf, 1))
	t.Cleanup(func() { must(t, nics.SetVFs(context.Background(), pf, 0)) })
	eventually(t, func() error { return haveNetdevs(pf, 1) })
	exclusive(t)
	found, _ := describe(t, nics)
	vf := found[topology.Near.Name].VFs[0]
	must(t, netlink.RdmaLinkAdd("mlx5_9", "fakeroce", vf.Netdevs[0].Name))

	order := orderFor(t, nics, vf.Address)
	p := newPod(t)
	must(t, hook(t, p.pid, order))
	checkInside(t, p, vf.Netdevs[0].MAC, order)
	checkRDMAInside(t, p, "mlx5_9")
	found, _ = describe(t, nics)
	if near := found[topology.Near.Name]; near.Away || !near.VFs[0].Away {
		t.Errorf("the NIC is away: %v, its VF: %v", near.Away, near.VFs[0].Away)
	}
	p.end()
	bring(t, nics, order.Home)
	checkHome(t, nics, order.Home)
}

// TestHookOnHostNetwork: a container in the host's network namespace has the NIC there.
func TestHookOnHostNetwork(t *testing.T) {
	nics := newAdapter(t)
	order := orderFor(t, nics, addresses[topology.Near.Name])
	must(t, hook(t, os.Getpid(), order))
	checkHome(t, nics, order.Home)
}

// TestHookFails: the container does not start, its message says why, and the NIC is
// where it was.
func TestHookFails(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, p *pod, order *hardware.NICMove)
		says   string
	}{
		"name taken in the Pod": {func(t *testing.T, p *pod, order *hardware.NICMove) {
			p.netlink(t, func(h *netlink.Handle) {
				must(t, h.LinkAdd(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: order.Name}}))
			})
		}, `name: "net1": the Pod has an interface of that name already`},
		"MTU beyond the NIC's": {func(_ *testing.T, _ *pod, order *hardware.NICMove) { order.MTU = 60000 },
			"takes 9000 at most"},
		"address that the kernel refuses": {func(_ *testing.T, _ *pod, order *hardware.NICMove) {
			order.Addresses = append(order.Addresses, "ff02::99/64")
		}, "address ff02::99/64 on net1"},
		"node of another device": {func(t *testing.T, _ *pod, order *hardware.NICMove) {
			order.Nodes = []string{nodeOf(t, topology.Near.RDMA)} // which is not lent
		}, "delete the Pod to have it prepared again"},
		"not there": {func(_ *testing.T, _ *pod, order *hardware.NICMove) { order.Home.Address = machine.Address{Bus: 0xee} },
			"0000:ee:00.0"},
		"container that has gone": {func(_ *testing.T, p *pod, _ *hardware.NICMove) { p.end() },
			"the container's network namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			nic := lend(t)
			nics := newAdapter(t)
			p := newPod(t)
			order := orderFor(t, nics, addresses[nic.Name])
			was := order.Home
			c.change(t, p, &order)
			if err := hook(t, p.pid, order); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the hook says: %v, want: …%s…", err, c.says)
			}
			checkHome(t, nics, was)
		})
	}
}

// TestHookOfVanishedNIC: one that was taken out between allocation and start.
func TestHookOfVanishedNIC(t *testing.T) {
	nic := lend(t)
	order := orderFor(t, newAdapter(t), addresses[nic.Name])
	remove(t, nic)
	if err := hook(t, newPod(t).pid, order); err == nil || !strings.Contains(err.Error(), order.Home.Address.String()) {
		t.Errorf("the hook says: %v", err)
	}
}
