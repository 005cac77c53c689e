package catalog

import (
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// notOfPairs are attributes of GPUs that pairs are without: the API takes 32 attributes
// and capacities of a device.
var notOfPairs = []resourceapi.QualifiedName{"brand", "driverVersionText", "index", "migEnabled"}

// addNIC adds the attributes of a device with a NIC. What is the function's own is the
// virtual function's, where there is one.
func addNIC(attributes attributes, m machine.Machine, d machine.Device) {
	nic, rdma := d.NIC, d.RDMA()
	if rdma == nil {
		rdma = &machine.RDMADevice{}
	}
	netdev := machine.Netdev{}
	if netdevs := d.Netdevs(); len(netdevs) > 0 {
		netdev = netdevs[0]
	}
	port := machine.RDMAPort{}
	if len(rdma.Ports) > 0 {
		port = rdma.Ports[0]
	}
	gid, roceV2 := port.RoCEv2()

	attributes["ifName"] = text(netdev.Name)
	attributes["mtu"] = number(netdev.MTU)
	attributes["rdmaDevice"] = text(rdma.Name)
	attributes["linkLayer"] = text(string(port.LinkLayer))
	attributes["speed"] = number(nic.Speed())
	attributes["rail"] = number(m.Rail(nic))
	attributes["lanes"] = number(d.Lanes)
	attributes["roceV2"] = boolean(roceV2)
	attributes["lossless"] = boolean(nic.DCB.Lossless())
	attributes["pfcPriorities"] = text(priorities(nic.DCB.PFC))
	attributes["trust"] = text(string(nic.DCB.Trust))
	attributes["model"] = text(nic.Model)
	if d.Kind == machine.KindPair {
		attributes["closeness"] = text(string(d.Closeness))
		attributes["nicPciBusID"] = text(d.Function().String())
		for _, name := range notOfPairs {
			delete(attributes, name)
		}
		return
	}
	attributes["linkState"] = text(port.State)
	attributes["gidIndex"] = number(-1)
	if roceV2 {
		attributes["gidIndex"] = number(gid.Index)
	}
	attributes["vendor"] = text(nic.Vendor)
	attributes["firmwareVersion"] = text(nic.FirmwareVersion)
	attributes["numVFs"] = number(len(nic.VFs))
	attributes["physicalFunction"] = text(nic.Address.String())
	attributes["pcieSwitch"] = text(nic.Location.Switch)
	attributes[pciBusID] = text(d.Function().String())
	attributes[pcieRoot] = text(nic.Location.PCIeRoot)
	attributes[numaNode] = number(nic.Location.NUMANode)
}

// priorities that are set, as people write them: "3,4".
func priorities(set [8]bool) string {
	var found []string
	for priority, is := range set {
		if is {
			found = append(found, strconv.Itoa(priority))
		}
	}
	return strings.Join(found, ",")
}
