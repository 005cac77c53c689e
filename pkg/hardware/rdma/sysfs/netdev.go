package sysfs

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// representor is the port's name of an interface that stands for a virtual function in the
// card's switch (linux, Documentation/networking/switchdev.rst). The PF has it, but it
// is nobody's to use.
var representor = regexp.MustCompile(`^(c[0-9]+)?pf[0-9]+([vs]f[0-9]+)?$`)

// netdevs lists interfaces. Which port each is on matters only where there are several.
func (t *Tree) netdevs(dir string) []Netdev {
	type ported struct {
		Netdev
		port int
	}
	names := t.list(dir)
	found := make([]ported, 0, len(names))
	for _, name := range names {
		one := ported{Netdev: Netdev{Name: name}}
		if len(names) > 1 {
			if representor.MatchString(t.read(dir, name, "phys_port_name")) {
				continue
			}
			one.port = t.number(dir, name, "dev_port")
		}
		one.Speed = t.number(dir, name, "speed")
		if one.Speed >= unknownSpeed {
			one.Speed = 0
		}
		found = append(found, one)
	}
	slices.SortStableFunc(found, func(a, b ported) int { return cmp.Compare(a.port, b.port) })
	netdevs := make([]Netdev, 0, len(found))
	for _, one := range found {
		netdevs = append(netdevs, one.Netdev)
	}
	return netdevs
}

// unknownSpeed is -1 in 32 bits, as some kernels print it (linux/ethtool.h, SPEED_UNKNOWN).
const unknownSpeed = 1<<32 - 1

// Netdev says whether an interface is of a device, and not software's alone.
func (t *Tree) Netdev(name string) bool {
	t.reads.Add(1)
	_, err := os.Stat(filepath.Join(t.root, "class/net", name, "device"))
	return err == nil
}

// Index of an interface, which it keeps whatever it is called; 0: it is not there.
func (t *Tree) Index(netdev string) int {
	return t.number(t.root, "class/net", netdev, "ifindex")
}
