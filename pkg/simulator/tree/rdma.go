package tree

import (
	"fmt"
	"path"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// Numbers of RDMA's character devices (linux, drivers/infiniband/core): those beyond
// the first have a major number of their own, which the kernel gives out, as it does the
// minor of rdma_cm among the miscellaneous.
const (
	majorInfiniBand = 231
	majorMoreVerbs  = 240
	minorISSM       = 64
	minorVerbs      = 192
	fixedVerbs      = 32
	majorMisc       = 10
	minorRDMACM     = 58
)

// rdma renders a function's RDMA device. Where that is in another network namespace
// the host sees its character devices alone.
func (n *network) rdma(dir string, f simulator.Function) {
	if f.RDMA == "" {
		return
	}
	if f.RDMAVisible() {
		n.ibDevice(path.Join(dir, "infiniband", f.RDMA), f)
	}
	for _, name := range f.Nodes() {
		kind, number := split(name)
		class, values := "infiniband_mad", map[string]string{"ibdev": f.RDMA, "port": "1"}
		character := node{"dev/infiniband/" + name, majorInfiniBand, number}
		switch kind {
		case "uverbs":
			class, values = "infiniband_verbs", map[string]string{"ibdev": f.RDMA, "abi_version": "1"}
			if character.minor = minorVerbs + number; number >= fixedVerbs {
				character.major, character.minor = majorMoreVerbs, number-fixedVerbs
			}
		case "issm":
			character.minor = minorISSM + number
		}
		values["dev"] = fmt.Sprintf("%d:%d", character.major, character.minor)
		entry := path.Join(dir, class, name)
		n.device(class, entry, values)
		n.link(path.Join(entry, "device"), "../../../"+f.Address.String())
		n.character(character)
	}
}

// split takes "uverbs12" apart.
func split(name string) (kind string, number int) {
	kind = strings.TrimRight(name, "0123456789")
	fmt.Sscan(name[len(kind):], &number) //nolint:errcheck // it ends in digits
	return kind, number
}

func (n *network) character(c node) {
	n.characters = append(n.characters, c)
	n.keep[c.name] = true
}

func (n *network) ibDevice(dir string, f simulator.Function) {
	model := f.NIC.Model.RDMA
	values := map[string]string{"node_type": "1: CA", "fw_ver": model.Firmware}
	for name, value := range map[string]string{"hca_type": model.TypeOf(f.VF >= 0), "board_id": model.Board} {
		if value != "" {
			values[name] = value
		}
	}
	n.device("infiniband", dir, values)
	n.link(path.Join(dir, "device"), "../../../"+f.Address.String())
	for _, p := range f.Ports() {
		n.port(path.Join(dir, "ports", fmt.Sprint(p.Number)), p)
	}
}

func (n *network) port(dir string, p machine.RDMAPort) {
	values := map[string]string{
		"state": "1: DOWN", "phys_state": "3: Disabled", "rate": rate(p.Rate), "link_layer": string(p.LinkLayer),
	}
	if p.State == "ACTIVE" {
		values["state"], values["phys_state"] = "4: ACTIVE", "5: LinkUp"
	}
	n.values(dir, values)
	gids, types, ndevs := map[string]string{}, map[string]string{}, map[string]string{}
	for _, g := range p.GIDs {
		index := fmt.Sprint(g.Index)
		gids[index], types[index] = g.GID, g.Type
		if g.Netdev != "" {
			ndevs[index] = g.Netdev
		}
	}
	for name, table := range map[string]map[string]string{"gids": gids, "gid_attrs/types": types, "gid_attrs/ndevs": ndevs} {
		n.values(path.Join(dir, name), table)
		keep := map[string]bool{}
		for index := range table {
			keep[path.Join(dir, name, index)] = true
		}
		n.removeMatching(path.Join(dir, name, "*"), keep)
	}
}

// rates are InfiniBand's words for them.
var rates = map[int]string{10: "1X QDR", 25: "1X EDR", 40: "4X QDR", 50: "1X HDR", 100: "4X EDR", 200: "4X HDR", 400: "4X NDR", 800: "4X XDR"}

// rate is a port's, from Gb/s.
func rate(speed int) string {
	if speed == simulator.RateUnknown {
		return "2.5 Gb/sec (1X SDR)"
	}
	word, ok := rates[speed]
	if !ok {
		word = "4X EDR"
	}
	return fmt.Sprintf("%d Gb/sec (%s)", speed, word)
}

// common renders what all RDMA devices have together, where there is any.
func (n *network) common() {
	if len(n.characters) == 0 {
		return
	}
	n.device("misc", "sys/devices/virtual/misc/rdma_cm", map[string]string{"dev": fmt.Sprintf("%d:%d", majorMisc, minorRDMACM)})
	n.character(node{"dev/infiniband/rdma_cm", majorMisc, minorRDMACM})
	n.file("sys/class/infiniband_verbs/abi_version", "6\n", 0o444)
	n.keep["sys/class/infiniband_verbs/abi_version"] = true
}
