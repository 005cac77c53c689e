package rdma

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// restore makes a function's interfaces on the host what they were.
func restore(host kernel.Namespace, home machine.NICHome) error {
	for i, d := range home.Netdevs {
		var dcb machine.DCB
		if i == 0 {
			dcb = home.DCB
		}
		if err := configure(host, home.Address, settings{NetdevHome: d, dcb: dcb, was: d, home: true}); err != nil {
			return err
		}
	}
	return nil
}

// settings are what an interface shall be.
type settings struct {
	machine.NetdevHome
	dcb machine.DCB
	// was is how it is found.
	was machine.NetdevHome
	// home says that it is the host's again.
	home bool
}

// configure makes an interface what it shall be, and leaves alone what it is already.
// Addresses and routes that it has beside stay.
func configure(in kernel.Namespace, function machine.Address, want settings) error {
	links, err := in.Links()
	if err != nil {
		return err
	}
	link, here := find(links, function, want.was)
	if !here {
		return failure.New(failure.Busy, "%s has just gone", want.was.Name)
	}
	if err := rename(in, links, &link, want.Name); err != nil {
		return err
	}
	if err := readdress(in, &link, want.MAC); err != nil {
		return err
	}
	if link.MTU != want.MTU && want.MTU != 0 {
		if err := in.SetMTU(link.Index, want.MTU); err != nil {
			return refused(err, "MTU %d of %s", want.MTU, want.Name)
		}
	}
	if want.home {
		if err := tidy(in, &link, want.NetdevHome); err != nil {
			return err
		}
		if err := setSysctls(in, &link, want.NetdevHome); err != nil {
			return err
		}
	}
	if err := setDCB(in, want.Name, want.dcb); err != nil {
		return err
	}
	if link.Up != want.Up {
		if err := in.SetUp(link.Index, want.Up); err != nil {
			return refused(err, "%s up: %t", want.Name, want.Up)
		}
	}
	if err := addAddresses(in, link.Index, want.NetdevHome); err != nil {
		return err
	}
	if !want.Up {
		return nil // without a link there are no routes
	}
	return addRoutes(in, link.Index, want.NetdevHome)
}

// setDCB sets what an interface had. One that had nothing is not asked.
func setDCB(in kernel.Namespace, name string, want machine.DCB) error {
	if !want.Lossless() && len(want.DSCP) == 0 && want.ETS == nil {
		return nil
	}
	if err := in.SetDCB(name, want); err != nil {
		return refused(err, "DCB settings of %s", name)
	}
	return nil
}

func addAddresses(in kernel.Namespace, index int, want machine.NetdevHome) error {
	if len(want.Addresses) == 0 {
		return nil
	}
	has, err := in.Addresses()
	if err != nil {
		return err
	}
	for _, address := range want.Addresses {
		if slices.ContainsFunc(has, func(a kernel.Address) bool { return a.Link == index && a.Address == address }) {
			continue
		}
		if err := addAddress(in, index, address, want.Name); err != nil && !errors.Is(err, unix.EEXIST) {
			return refused(err, "address %s on %s", address, want.Name)
		}
	}
	return nil
}

// addAddress adds one, of IPv6 also where new interfaces have none: each that comes into
// a namespace is new there, whatever it was before.
func addAddress(in kernel.Namespace, index int, address, name string) error {
	err := in.AddAddress(index, address)
	if !errors.Is(err, unix.EACCES) {
		return err
	}
	if err := in.SetSysctl(name, noIPv6, 0); err != nil {
		return failure.New(failure.Busy, "IPv6 is disabled on it: run `%s` (%w)", setting(name, noIPv6, 0), err)
	}
	return in.AddAddress(index, address)
}

// addRoutes adds first what is on the link, so that next hops can be reached.
func addRoutes(in kernel.Namespace, index int, want machine.NetdevHome) error {
	if len(want.Routes) == 0 {
		return nil
	}
	has, err := in.Routes()
	if err != nil {
		return err
	}
	routes := slices.Clone(want.Routes)
	slices.SortStableFunc(routes, func(a, b machine.Route) int { return strings.Compare(hop(a), hop(b)) })
	for _, route := range routes {
		if slices.ContainsFunc(has, func(r kernel.Route) bool { return r.Link == index && same(r.Route, route) }) {
			continue
		}
		if err := in.AddRoute(index, route); err != nil && !errors.Is(err, unix.EEXIST) {
			return refused(err, "route to %s through %s", route.To, want.Name)
		}
	}
	return nil
}

// hop orders routes: those without a next hop come first.
func hop(r machine.Route) string {
	if r.Via == "" {
		return ""
	}
	return "via"
}

// same says whether a route is the wanted one, where the kernel fills in what is left
// open: metric, scope and protocol.
func same(is, want machine.Route) bool {
	return is.To == want.To && is.Via == want.Via && is.Table == want.Table &&
		(want.From == "" || is.From == want.From) && (want.Metric == 0 || is.Metric == want.Metric)
}
