package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/harness/seen"
)

// network looks at the interfaces in the Pod.
func (v *view) network() error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return err
	}
	routes, err := routes()
	if err != nil {
		return err
	}
	v.Interfaces = map[string]seen.Interface{}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			return fmt.Errorf("%s: %w", i.Name, err)
		}
		found := seen.Interface{MAC: i.HardwareAddr.String(), MTU: i.MTU, Up: i.Flags&net.FlagUp != 0, Routes: routes[i.Name]}
		for _, a := range addresses {
			if prefix, ok := a.(*net.IPNet); ok && !prefix.IP.IsLinkLocalUnicast() {
				found.Addresses = append(found.Addresses, a.String())
			}
		}
		v.Interfaces[i.Name] = found
	}
	return nil
}

// routes are those of IPv4, by interface (/proc/net/route: addresses in hexadecimal, in
// the order of the network's bytes as a little-endian number).
func routes() (map[string][]string, error) {
	content, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(content)), "\n")[1:] {
		fields := strings.Fields(line)
		if len(fields) < 8 {
			return nil, fmt.Errorf("/proc/net/route: %q", line)
		}
		to, via, mask := address(fields[1]), address(fields[2]), address(fields[7])
		ones, _ := net.IPMask(mask).Size()
		route := fmt.Sprintf("%s/%d", to, ones)
		if !via.IsUnspecified() {
			route += " via " + via.String()
		}
		found[fields[0]] = append(found[fields[0]], route)
	}
	return found, nil
}

// address of that kind; what is none is 0.0.0.0.
func address(hexadecimal string) net.IP {
	number, _ := strconv.ParseUint(hexadecimal, 16, 32)
	return net.IP(binary.LittleEndian.AppendUint32(nil, uint32(number)))
}

// rdma looks for nodes of RDMA devices, and tries all numbers of verbs.
func (v *view) rdma() error {
	nodes, err := filepath.Glob("/dev/infiniband/*")
	if err != nil {
		return err
	}
	v.RDMANodes = map[string]string{}
	for _, node := range nodes {
		var stat unix.Stat_t
		if err := unix.Stat(node, &stat); err != nil {
			return fmt.Errorf("%s: %w", node, err)
		}
		v.RDMANodes[filepath.Base(node)] = fmt.Sprintf("%d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
	}
	for n := range seen.VerbsNumbers {
		if open(seen.VerbsMajor, seen.VerbsMinor+n) != seen.Refused {
			v.VerbsOpened = append(v.VerbsOpened, n)
		}
	}
	return nil
}
