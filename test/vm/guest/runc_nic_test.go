package guest

import (
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
)

// containerWith has a NIC, in place of a Pod of which it is the only container.
func containerWith(order hardware.NICMove) *container {
	return &container{id: "with-nic", devices: []cdi.Device{{Request: "nic", Name: "nic", NIC: &cdi.NIC{
		Name: "nic", RDMA: order.Home.RDMA, Nodes: order.Nodes, Move: &order,
	}}}}
}

// TestNICByRunc: the whole way of a NIC into a container, and home.
func TestNICByRunc(t *testing.T) {
	inEachMode(t, func(t *testing.T, _ string) {
		nic := lend(t)
		nics := newAdapter(t)
		order := orderFor(t, nics, addresses[nic.Name])
		c := containerWith(order)
		must(t, c.create(t))
		p := &pod{pid: c.pid}
		checkInside(t, p, nic.MAC, order)
		checkRDMAInside(t, p, nic.RDMA)
		bring(t, nics, order.Home)
		checkHome(t, nics, order.Home)
	})
}

// TestNICByRuncFails: the container does not start, runc says why, and the NIC is where it
// was.
func TestNICByRuncFails(t *testing.T) {
	nic := lend(t)
	nics := newAdapter(t)
	order := orderFor(t, nics, addresses[nic.Name])
	was := order.Home
	order.MTU = 60000
	c := containerWith(order)
	err := c.create(t)
	for _, want := range []string{"createRuntime hook #0", was.Address.String(), "takes 9000 at most"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("runc says: %v, want: …%s…", err, want)
		}
	}
	checkHome(t, nics, was)
	must(t, absent(c.cgroup()))
}
