package sysfs

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// RDMA is a function's RDMA device.
type RDMA struct {
	machine.RDMADevice
	Firmware, Model string
	// Away says that it is in another network namespace, where only its character devices
	// show.
	Away bool
}

// nodes is where character devices are on the host (udev's rules of rdma-core).
const nodes = "/dev/infiniband/"

// rdma reads the RDMA device of a function with those entries; nil: it has none.
func (t *Tree) rdma(dir string, entries []string) *RDMA {
	has := func(name string) bool { return slices.Contains(entries, name) }
	found := &RDMA{Away: true}
	if has("infiniband") {
		for _, name := range t.list(dir, "infiniband") {
			found.Name, found.Away = name, false
			break
		}
	}
	if has("infiniband_verbs") {
		for _, name := range t.list(dir, "infiniband_verbs") {
			is := t.read(dir, "infiniband_verbs", name, "ibdev")
			if found.Name == "" {
				found.Name = is
			}
			if is == found.Name || is == "" {
				found.Nodes = append(found.Nodes, nodes+name)
			}
		}
	}
	if found.Name == "" {
		return nil
	}
	if has("infiniband_mad") {
		for _, name := range t.list(dir, "infiniband_mad") {
			found.Nodes = append(found.Nodes, nodes+name)
		}
	}
	if !found.Away {
		device := filepath.Join(dir, "infiniband", found.Name)
		found.Firmware, found.Model = t.read(device, "fw_ver"), t.read(device, "hca_type")
		found.Ports = t.ports(device)
	}
	return found
}

func (t *Tree) ports(device string) []machine.RDMAPort {
	var ports []machine.RDMAPort
	for _, name := range t.list(device, "ports") {
		number, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		dir := filepath.Join(device, "ports", name)
		ports = append(ports, machine.RDMAPort{
			Number:    number,
			LinkLayer: machine.LinkLayer(t.read(dir, "link_layer")),
			State:     word(t.read(dir, "state")),
			Rate:      rate(t.read(dir, "rate")),
			GIDs:      t.gids(dir),
		})
	}
	slices.SortFunc(ports, func(a, b machine.RDMAPort) int { return a.Number - b.Number })
	return ports
}

// word takes the name out of "4: ACTIVE".
func word(state string) string {
	_, name, _ := strings.Cut(state, ": ")
	return name
}

// rate takes the number out of "400 Gb/sec (4X NDR)" or "2.5 Gb/sec (1X SDR)".
func rate(text string) int {
	number, _, _ := strings.Cut(text, " ")
	gigabits, err := strconv.ParseFloat(number, 64)
	if err != nil || gigabits < 0 {
		return 0
	}
	return int(gigabits)
}

// noGID is what an empty place of the table reads as.
const noGID = "0000:0000:0000:0000:0000:0000:0000:0000"

// gap is how many places in a row are empty before the rest is taken to be: tables are of
// up to 256, are filled from the front, and each place costs a read.
const gap = 16

func (t *Tree) gids(port string) []machine.GID {
	var found []machine.GID
	for index, empty := 0, 0; empty < gap; index++ {
		at := strconv.Itoa(index)
		gid := t.read(port, "gids", at)
		if gid == "" || gid == noGID {
			empty++
			continue
		}
		empty = 0
		found = append(found, machine.GID{
			Index: index, GID: gid,
			Type:   t.read(port, "gid_attrs/types", at),
			Netdev: t.read(port, "gid_attrs/ndevs", at),
		})
	}
	return found
}

// Node is the RDMA device that a character device is of: "mlx5_0" of
// "/dev/infiniband/uverbs0"; empty where the kernel has no such device. own is false for
// those that all RDMA devices have together.
func (t *Tree) Node(path string) (device string, own bool) {
	name := filepath.Base(path)
	for prefix, class := range map[string]string{"uverbs": "infiniband_verbs", "umad": "infiniband_mad", "issm": "infiniband_mad"} {
		if strings.HasPrefix(name, prefix) {
			return t.read(t.root, "class", class, name, "ibdev"), true
		}
	}
	return "", false
}

// CommonNodes are the character devices that all RDMA devices have together.
func (t *Tree) CommonNodes() []string {
	if t.read(t.root, "class/misc/rdma_cm/dev") == "" {
		return nil
	}
	return []string{nodes + "rdma_cm"}
}
