package tree

import (
	"fmt"
	"path"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// network renders the NICs' network interfaces and RDMA devices, in their functions'
// directories and by class, and the character devices.
func (w *writer) network(state *simulator.State) {
	n := &network{writer: w, keep: map[string]bool{}}
	for _, f := range state.Functions() {
		dir := functionDir(f)
		for i, d := range f.Netdevs {
			if d.Namespace == "" { // sysfs shows those of one namespace alone
				n.netdev(path.Join(dir, "net", d.Name), f, i)
			}
		}
		n.rdma(dir, f)
		for _, kind := range []string{"net", "infiniband", "infiniband_verbs", "infiniband_mad"} {
			n.removeMatching(path.Join(dir, kind, "*"), n.keep)
			n.removeEmpty(path.Join(dir, kind))
		}
	}
	n.others(state)
	n.common()
	for _, class := range []string{"net", "infiniband", "infiniband_verbs", "infiniband_mad", "misc"} {
		n.removeMatching("sys/class/"+class+"/*", n.keep)
	}
	n.removeMatching("sys/devices/virtual/net/*", n.keep)
	n.removeMatching("dev/infiniband/*", n.keep)
	n.nodes(n.characters)
}

// network collects what there is.
type network struct {
	*writer
	keep       map[string]bool
	characters []node
}

func functionDir(f simulator.Function) string {
	return path.Join("sys/devices", path.Join(f.NIC.Spec.Above...), f.Address.String())
}

// device makes a device's directory of that class, and the link to it in sys/class.
func (n *network) device(class, dir string, values map[string]string) {
	n.values(dir, values)
	link := path.Join("sys/class", class, path.Base(dir))
	n.link(link, "../../"+strings.TrimPrefix(dir, "sys/"))
	n.keep[dir], n.keep[link] = true, true
}

// Values of a network interface's files (linux, if.h and if_arp.h).
const (
	flagsDown      = "0x1002"
	flagsUp        = "0x1003"
	typeEthernet   = "1"
	typeInfiniBand = "32"
)

func (n *network) netdev(dir string, f simulator.Function, i int) {
	d := f.Netdevs[i]
	values := map[string]string{
		"address": d.MAC, "mtu": fmt.Sprint(d.MTU), "type": typeEthernet, "flags": flagsDown,
		"operstate": "down", "carrier": "0", "speed": "-1", "dev_port": fmt.Sprint(i), "phys_port_name": "",
	}
	if f.NIC.InfiniBand() {
		values["type"] = typeInfiniBand
	}
	if d.Up {
		values["flags"] = flagsUp
	}
	if f.Carrier(d) {
		values["operstate"], values["carrier"] = "up", "1"
		if speed := f.NIC.Spec.Speed; speed > 0 {
			values["speed"] = fmt.Sprint(speed * 1000)
		}
	}
	if f.VF < 0 && f.NIC.Model.RDMA != nil {
		values["phys_port_name"] = fmt.Sprintf("p%d", i)
	}
	n.device("net", dir, values)
	n.link(path.Join(dir, "device"), "../../../"+f.Address.String())
	if bond := f.NIC.Spec.Bond; bond != "" && f.VF < 0 {
		n.link(path.Join(dir, "master"), up(dir)+"devices/virtual/net/"+bond)
		n.virtual(bond, d.MAC, d.MTU)
	}
}

// others renders interfaces of no NIC.
func (n *network) others(state *simulator.State) {
	for i, name := range state.Network.Interfaces {
		n.virtual(name, simulator.MAC(state.Spec.Name, machine.Address{}, i), 1500)
	}
}

func (n *network) virtual(name, mac string, mtu int) {
	dir := "sys/devices/virtual/net/" + name
	if n.keep[dir] {
		return
	}
	n.device("net", dir, map[string]string{
		"address": mac, "mtu": fmt.Sprint(mtu), "type": typeEthernet, "flags": flagsUp, "operstate": "up", "carrier": "1",
	})
}
