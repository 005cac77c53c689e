package rdma

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Bounds of the kernel's (linux/if.h, IFNAMSIZ; RFC 791; linux/if_ether.h,
// ETH_MAX_MTU).
const (
	longestName = 15
	leastMTU    = 68
	greatestMTU = 65535
)

// check says what is wrong with an order, whatever the NIC is. Errors are failure.Invalid.
func check(order hardware.NICMove) error {
	if err := checkName(order.Name); order.Name != "" && err != nil {
		return err
	}
	if order.Name != "" && len(order.Home.Netdevs) == 0 {
		return failure.New(failure.Invalid, "name: %q: NIC %s has no network interface: leave the name out", order.Name, order.Home.Address)
	}
	if order.MTU != 0 && (order.MTU < leastMTU || order.MTU > greatestMTU) {
		return failure.New(failure.Invalid, "mtu: %d: it must be from %d to %d", order.MTU, leastMTU, greatestMTU)
	}
	for _, a := range order.Addresses {
		if _, err := netip.ParsePrefix(a); err != nil {
			return failure.New(failure.Invalid, "addresses: %q: an address with its prefix is needed, such as 10.0.0.1/24", a)
		}
	}
	for _, r := range order.Routes {
		if err := checkRoute(r); err != nil {
			return err
		}
	}
	return nil
}

// checkName follows the kernel's rules (dev_valid_name).
func checkName(name string) error {
	bad := func(r rune) bool { return r == '/' || r == ':' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	switch {
	case len(name) > longestName:
		return failure.New(failure.Invalid, "name: %q: an interface's name has at most %d bytes", name, longestName)
	case name == "" || name == "." || name == ".." || strings.ContainsFunc(name, bad) || strings.Contains(name, "%"):
		return failure.New(failure.Invalid, "name: %q: an interface's name is of printable characters without space, '/', ':' and '%%'", name)
	}
	return nil
}

func checkRoute(r machine.Route) error {
	to, err := netip.ParsePrefix(r.To)
	if err != nil {
		return failure.New(failure.Invalid, "routes: to: %q: a prefix is needed, such as 10.0.0.0/8", r.To)
	}
	for field, value := range map[string]string{"via": r.Via, "from": r.From} {
		if value == "" {
			continue
		}
		address, err := netip.ParseAddr(value)
		if err != nil {
			return failure.New(failure.Invalid, "routes: %s: %q: an address is needed, such as 10.0.0.1", field, value)
		}
		if field == "from" && address.Is4() != to.Addr().Is4() {
			return failure.New(failure.Invalid, "routes: from: %q: the source must be of the same family as the destination, %s", value, r.To)
		}
	}
	return nil
}

// stillPrepared refuses an order of a claim that was released meanwhile. Its file goes
// before its NIC is brought home, which waits for the same lock as this call has.
func stillPrepared(order hardware.NICMove) error {
	if order.While == "" {
		return nil
	}
	_, err := os.Stat(order.While)
	if errors.Is(err, fs.ErrNotExist) {
		return failure.New(failure.Conflict, "the claim was released meanwhile (%s is no more): delete the Pod to have it prepared again", order.While)
	}
	return err
}

// wanted is what each interface shall be in the container, in the order of the home's.
func wanted(order hardware.NICMove) []settings {
	all := make([]settings, 0, len(order.Home.Netdevs))
	for i, was := range order.Home.Netdevs {
		want := settings{NetdevHome: was, was: was}
		want.Up = true
		want.Routes = ofPod(was)
		if i == 0 {
			adopt(&want, order)
		}
		all = append(all, want)
	}
	return all
}

// adopt is what an order says of the first interface.
func adopt(want *settings, order hardware.NICMove) {
	if order.Name != "" {
		want.Name = order.Name
	}
	if order.MTU != 0 {
		want.MTU = order.MTU
	}
	if len(order.Addresses) > 0 {
		want.Addresses, want.Routes = order.Addresses, nil
	}
	want.Routes = slices.Concat(want.Routes, order.Routes)
}

// ofPod are those of the host's routes that go along, without those of tables that only the
// host's rules lead to. A source that is another interface's stays behind: the kernel takes
// no route with one that it does not have.
func ofPod(was machine.NetdevHome) []machine.Route {
	routes := slices.DeleteFunc(slices.Clone(was.Routes), func(r machine.Route) bool { return r.Table != 0 })
	for i := range routes {
		of := func(address string) bool { return strings.HasPrefix(address, routes[i].From+"/") }
		if !slices.ContainsFunc(was.Addresses, of) {
			routes[i].From = ""
		}
	}
	return routes
}
