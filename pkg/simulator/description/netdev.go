package description

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
)

// minMTU is the smallest of IPv4 (RFC 791).
const minMTU = 68

var (
	nameForm      = regexp.MustCompile(`^[A-Za-z0-9_-]{1,63}$`)
	interfaceForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,15}$`)
)

func (f *File) netdevs(n *NIC, spec *simulator.NICSpec, m *model.NIC) error {
	wanted := make([]Netdev, m.Ports)
	switch {
	case n.Netdevs != nil:
		wanted = *n.Netdevs
	case spec.LinkLayer == machine.LinkInfiniBand:
		wanted = nil // IPoIB is for whoever says so
	}
	if len(wanted) > max(m.Ports, 2) {
		return fmt.Errorf("netdevs: %d of one function: give at most %d", len(wanted), max(m.Ports, 2))
	}
	for i, d := range wanted {
		d.Name = cmp.Or(d.Name, interfaceName(spec.Address, m, i))
		d.MAC = strings.ToLower(cmp.Or(d.MAC, simulator.MAC(f.Name, spec.Address, i)))
		d.MTU = cmp.Or(d.MTU, n.MTU, 1500)
		if err := d.check(m); err != nil {
			return fmt.Errorf("netdevs[%d]: %w", i, err)
		}
		spec.Netdevs = append(spec.Netdevs, simulator.NetdevSpec(d))
	}
	return nil
}

// interfaceName is the one that systemd gives (systemd.net-naming-scheme(7)):
// "enp24s0np0", "enP8p1s0f1np0".
func interfaceName(a machine.Address, m *model.NIC, port int) string {
	name := "en"
	if a.Domain != 0 {
		name += fmt.Sprintf("P%d", a.Domain)
	}
	name += fmt.Sprintf("p%ds%d", a.Bus, a.Device)
	if a.Function != 0 {
		name += fmt.Sprintf("f%d", a.Function)
	}
	if m.RDMA != nil {
		name += fmt.Sprintf("np%d", port)
	}
	return name
}

func (d *Netdev) check(m *model.NIC) error {
	if !interfaceForm.MatchString(d.Name) || d.Name == "." || d.Name == ".." {
		return fmt.Errorf("name: %q is no interface name: use up to %d letters, digits, ., - and _", d.Name, simulator.MaxInterfaceName)
	}
	if mac, err := net.ParseMAC(d.MAC); err != nil || len(mac) != 6 || mac.String() != d.MAC || mac[0]&1 != 0 {
		return fmt.Errorf("mac: %q is no address of one interface: write one such as b8:3f:d2:00:00:01, or leave it out", d.MAC)
	}
	if d.MTU < minMTU || d.MTU > m.MaxMTU {
		return fmt.Errorf("mtu: %d is out of range: give %d to %d, which is as much as model %s takes", d.MTU, minMTU, m.MaxMTU, m.Name)
	}
	for _, a := range d.Addresses {
		if _, err := netip.ParsePrefix(a); err != nil {
			return fmt.Errorf("addresses: %q is no address with its prefix: write one such as 192.0.2.1/24", a)
		}
	}
	for i, r := range d.Routes {
		if _, err := netip.ParsePrefix(r.To); err != nil {
			return fmt.Errorf("routes[%d]: to: %q is no prefix: write one such as 198.51.100.0/24", i, r.To)
		}
		for field, a := range map[string]string{"via": r.Via, "from": r.From} {
			if _, err := netip.ParseAddr(a); a != "" && err != nil {
				return fmt.Errorf("routes[%d]: %s: %q is no address: write one such as 192.0.2.1, or leave it out", i, field, a)
			}
		}
	}
	return nil
}
