package main

import (
	"fmt"
	"net"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/harness/seen"
)

// network looks at the interfaces in the Pod.
func (v *view) network() error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return err
	}
	v.Interfaces = map[string]seen.Interface{}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			return fmt.Errorf("%s: %w", i.Name, err)
		}
		found := seen.Interface{MAC: i.HardwareAddr.String(), MTU: i.MTU, Up: i.Flags&net.FlagUp != 0}
		for _, a := range addresses {
			if prefix, ok := a.(*net.IPNet); ok && !prefix.IP.IsLinkLocalUnicast() {
				found.Addresses = append(found.Addresses, a.String())
			}
		}
		v.Interfaces[i.Name] = found
	}
	return nil
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
