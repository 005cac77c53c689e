package claim

import (
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/nccl"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// topologyOf is what NCCL is told of a claim's devices; nil where it is told nothing. A
// device that the machine no longer has is left out: containers cannot use it.
func topologyOf(e *journal.Entry, now *machine.Machine) ([]byte, error) {
	devices, err := devicesOf(e)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(devices, func(d plan.Device) bool { return d.NIC != nil && d.NIC.Topology && !d.AdminAccess }) {
		return nil, nil
	}
	var places []nccl.Device
	for _, d := range devices {
		if device, known := now.Device(d.Name); known && !d.AdminAccess {
			places = append(places, placesOf(device)...)
		}
	}
	return nccl.Topology(places), nil
}

func placesOf(d machine.Device) []nccl.Device {
	var places []nccl.Device
	if d.GPU != nil {
		places = append(places, nccl.Device{Address: d.GPU.Address, Class: nccl.ClassGPU, Location: d.GPU.Location})
	}
	if d.NIC != nil {
		class := nccl.ClassEthernet
		if rdma := d.RDMA(); rdma != nil && len(rdma.Ports) > 0 && rdma.Ports[0].LinkLayer == machine.LinkInfiniBand {
			class = nccl.ClassInfiniBand
		}
		places = append(places, nccl.Device{Address: d.Function(), Class: class, Location: d.NIC.Location})
	}
	if d.Closeness == machine.ClosenessDeclared {
		places[0].Beside, places[1].Beside = &places[1].Address, &places[0].Address
	}
	return places
}
