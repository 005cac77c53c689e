package kernel

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Where a link's sysctls are in an answer (linux/if_link.h, IFLA_INET_CONF and
// IFLA_INET6_CONF), and below net.
var families = []struct {
	family, conf uint16
	folder       string
	// places of the sysctls in the list, from 0 (linux/ip.h, IPV4_DEVCONF_*, less 1;
	// linux/ipv6.h, DEVCONF_*).
	places map[string]int
}{
	{unix.AF_INET, unix.IFLA_INET_CONF, "ipv4/conf", map[string]int{
		"forwarding": 0, "proxy_arp": 2, "accept_redirects": 3, "send_redirects": 5, "rp_filter": 7, "accept_source_route": 8,
		"arp_filter": 12, "arp_announce": 17, "arp_ignore": 18, "arp_accept": 20, "arp_notify": 21, "accept_local": 22,
		"src_valid_mark": 23, "route_localnet": 25,
	}},
	{unix.AF_INET6, unix.IFLA_INET6_CONF, "ipv6/conf", map[string]int{
		"forwarding": 0, "accept_ra": 3, "accept_redirects": 4, "autoconf": 5, "use_tempaddr": 10, "accept_ra_defrtr": 17,
		"proxy_ndp": 22, "disable_ipv6": 26, "accept_dad": 27, "addr_gen_mode": 47,
	}},
}

// Sysctls implements Namespace.
func (n *namespace) Sysctls(index int) (map[string]int, error) {
	r := n.request(unix.RTM_GETLINK, 0)
	message := nl.NewIfInfomsg(unix.AF_UNSPEC)
	message.Index = int32(index)
	r.AddData(message)
	r.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(skipStatistics)))
	answers, err := r.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return nil, err
	}
	set := map[string]int{}
	for _, answer := range answers {
		for _, f := range families {
			conf, err := attribute(answer[min(len(answer), unix.SizeofIfInfomsg):], unix.IFLA_AF_SPEC, f.family, f.conf)
			if err != nil {
				return nil, fmt.Errorf("interface %d: %w", index, err)
			}
			for name, place := range f.places {
				if at := 4 * place; at+4 <= len(conf) && number(conf[at:at+4]) != 0 {
					set[f.folder+"/"+name] = number(conf[at : at+4])
				}
			}
		}
	}
	return set, nil
}

// SetSysctl implements Namespace. There is no message for those of IPv6. Whose a file is
// depends on the thread that opens it (proc_sys(5), net).
func (n *namespace) SetSysctl(link, name string, value int) error {
	folder, name := path.Split(name)
	file := filepath.Join(n.proc, "sys/net", folder, link, name)
	return n.inside(func() error { return os.WriteFile(file, []byte(strconv.Itoa(value)), 0) })
}
