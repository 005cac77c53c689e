package rdma

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// noIPv6 is the sysctl by which an interface has no IPv6.
const noIPv6 = "ipv6/conf/disable_ipv6"

// setSysctls makes those of an interface what they were on the host: the kernel makes them
// anew, from those of new interfaces, in each namespace (net/ipv4/devinet.c, inetdev_init;
// net/ipv6/addrconf.c, ipv6_add_dev). It comes before the interface is up, when it begins
// to listen to routers.
func setSysctls(host kernel.Namespace, link *kernel.Link, want machine.NetdevHome) error {
	if want.Sysctls == nil {
		return nil
	}
	is, err := host.Sysctls(link.Index)
	if err != nil {
		return refused(err, "reading the sysctls of %s", link.Name)
	}
	all := maps.Clone(is)
	maps.Copy(all, want.Sysctls)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := want.Sysctls[name]
		if is[name] == value {
			continue
		}
		err := host.SetSysctl(link.Name, name, value)
		if err != nil && !errors.Is(err, unix.ENOENT) { // which this kernel has no more
			return failure.New(failure.Busy, "%s of %s was %d on the host: run `%s` (%w)", path.Base(name), link.Name, value, setting(link.Name, name, value), err)
		}
	}
	return nil
}

// setting is the command that sets a sysctl of an interface, whose name may have dots.
func setting(link, name string, value int) string {
	return fmt.Sprintf("sysctl -w net/%s/%s/%s=%d", path.Dir(name), link, path.Base(name), value)
}
