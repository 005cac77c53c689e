package main

import (
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// topology is where a machine's GPUs and NICs are, for programs.
type topology struct {
	GPUs []topologyGPU `json:"gpus"`
	NICs []topologyNIC `json:"nics"`
	// Closeness of each device to each other one, by their labels: as "nvidia-smi topo
	// -m" has it.
	Closeness map[string]map[string]machine.Closeness `json:"closeness"`
	// Pairs that are offered, in the order of preference.
	Pairs []topologyPair `json:"pairs"`
	// RDMAExclusive as machine.Machine has it.
	RDMAExclusive bool `json:"rdmaExclusive,omitempty"`

	Faults []machine.Fault `json:"faults,omitempty"`
}

// topologyGPU is one GPU. Label is its row's.
type topologyGPU struct {
	Label    string           `json:"label"`
	Name     string           `json:"name"`
	Product  string           `json:"product"`
	UUID     string           `json:"uuid"`
	Address  machine.Address  `json:"address"`
	Location machine.Location `json:"location"`
}

// topologyNIC is one NIC, offered or not.
type topologyNIC struct {
	Label      string           `json:"label"`
	Name       string           `json:"name"`
	RDMADevice string           `json:"rdmaDevice,omitempty"`
	Interfaces []string         `json:"interfaces,omitempty"`
	Address    machine.Address  `json:"address"`
	Location   machine.Location `json:"location"`
	// Speed in Gb/s; 0: unknown.
	Speed int `json:"speed"`
	// Withheld says why it is not offered; Rail, Lanes and VFs (those that are offered)
	// are of NICs that are.
	Withheld string         `json:"withheld,omitempty"`
	Rail     int            `json:"rail"`
	Lanes    int            `json:"lanes"`
	VFs      int            `json:"vfs,omitempty"`
	Away     bool           `json:"away,omitempty"`
	Health   machine.Health `json:"health,omitzero"`
}

// topologyPair is a device of type pair. GPU and NIC are labels.
type topologyPair struct {
	Name      string            `json:"name"`
	GPU       string            `json:"gpu"`
	NIC       string            `json:"nic"`
	VF        *int              `json:"vf,omitempty"`
	Closeness machine.Closeness `json:"closeness"`
	Lanes     int               `json:"lanes"`
	Rail      int               `json:"rail"`
	// Moves says whether the interface goes into the Pod.
	Moves bool `json:"moves"`
}

func topologyOf(m *machine.Machine) topology {
	t := topology{GPUs: []topologyGPU{}, NICs: []topologyNIC{}, Pairs: []topologyPair{}, RDMAExclusive: m.RDMAExclusive, Faults: m.AllFaults()}
	places := map[string]*machine.Location{}
	var order []string
	labels := map[machine.Address]string{}
	add := func(label string, a machine.Address, l *machine.Location) {
		places[label], labels[a], order = l, label, append(order, label)
	}
	for i := range m.GPUs {
		gpu := &m.GPUs[i]
		label := fmt.Sprintf("GPU%d", i)
		add(label, gpu.Address, &gpu.Location)
		t.GPUs = append(t.GPUs, topologyGPU{label, gpu.Name(), gpu.ProductName, gpu.UUID, gpu.Address, gpu.Location})
	}
	for i := range m.NICs {
		nic := nicOf(m, &m.NICs[i])
		nic.Label = fmt.Sprintf("NIC%d", i)
		add(nic.Label, nic.Address, &m.NICs[i].Location)
		t.NICs = append(t.NICs, nic)
	}
	t.Closeness = closeness(order, places)
	for _, d := range m.Devices() {
		if d.Kind != machine.KindPair {
			continue
		}
		pair := topologyPair{
			Name: d.Name, GPU: labels[d.GPU.Address], NIC: labels[d.NIC.Address],
			Closeness: d.Closeness, Lanes: d.Lanes, Rail: m.Rail(d.NIC), Moves: d.Moves(),
		}
		if d.VF != nil {
			pair.VF = &d.VF.Index
		}
		t.Pairs = append(t.Pairs, pair)
	}
	return t
}

func nicOf(m *machine.Machine, nic *machine.NIC) topologyNIC {
	n := topologyNIC{
		Name: nic.Name(), Address: nic.Address, Location: nic.Location, Speed: nic.Speed(),
		Withheld: nic.WhyNot(), Rail: m.Rail(nic), Away: nic.Away, Health: nic.Health,
	}
	if nic.RDMA != nil {
		n.RDMADevice = nic.RDMA.Name
	}
	for _, netdev := range nic.Netdevs {
		n.Interfaces = append(n.Interfaces, netdev.Name)
	}
	if nic.Offered() {
		n.Lanes = m.Lanes(nic)
	}
	for i := range nic.VFs {
		if nic.Offered() && nic.VFs[i].Offered() {
			n.VFs++
		}
	}
	return n
}

func closeness(order []string, places map[string]*machine.Location) map[string]map[string]machine.Closeness {
	all := map[string]map[string]machine.Closeness{}
	for _, a := range order {
		all[a] = map[string]machine.Closeness{}
		for _, b := range order {
			if a != b {
				all[a][b] = places[a].Closeness(places[b])
			}
		}
	}
	return all
}
