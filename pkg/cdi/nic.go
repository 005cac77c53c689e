package cdi

import (
	"path/filepath"
	"slices"
	"strings"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/nccl"
)

// NIC is a device's NIC.
type NIC struct {
	// Name of the NIC, "nic-1a-00", or of its VF, "vf-1a-00-3".
	Name string
	// RDMA is its RDMA device's name, and Nodes are the character devices that its users
	// need.
	RDMA  string
	Nodes []string
	// TrafficClass and GIDIndex as nccl.NIC has them.
	TrafficClass, GIDIndex *int
	// Move is how it goes into the container's network namespace; nil where it stays
	// with the host.
	Move *hardware.NICMove
}

func (n *NIC) nccl() nccl.NIC {
	return nccl.NIC{RDMA: n.RDMA, TrafficClass: n.TrafficClass, GIDIndex: n.GIDIndex}
}

// NIC implements Edits.
func (n *NVIDIA) NIC(nic *NIC) (*specs.ContainerEdits, error) {
	edits := &specs.ContainerEdits{Env: []string{variable(nic.Name) + "=" + nic.RDMA}}
	for _, path := range nic.Nodes {
		node := &specs.DeviceNode{Path: path, Permissions: "rw"}
		if host := filepath.Join(n.options.NodeRoot, path); host != path {
			node.HostPath = host
		}
		edits.DeviceNodes = append(edits.DeviceNodes, node)
	}
	if nic.Move != nil {
		hook, err := n.options.Hook.move(nic.Move)
		if err != nil {
			return nil, err
		}
		edits.Hooks = append(edits.Hooks, hook)
	}
	return edits, nil
}

// nics are those of a claim's devices that containers may use.
func (c *Claim) nics() []nccl.NIC {
	var all []nccl.NIC
	for _, d := range c.Devices {
		if d.NIC != nil && !d.AdminAccess {
			all = append(all, d.NIC.nccl())
		}
	}
	return all
}

// bound ends the orders to move NICs with the specification: who starts a container that
// has one may do so late.
func (s *Store) bound(c Claim) Claim {
	c.Devices = slices.Clone(c.Devices)
	for i := range c.Devices {
		if nic := c.Devices[i].NIC; nic != nil && nic.Move != nil {
			one, move := *nic, *nic.Move
			move.While = s.path(c.UID)
			one.Move, c.Devices[i].NIC = &move, &one
		}
	}
	return c
}

// withNIC adds what a device's NIC adds.
func (c *Claim) withNIC(to *specs.ContainerEdits, d Device, edits Edits, topology *specs.Mount) error {
	own, err := edits.NIC(d.NIC)
	if err != nil {
		return err
	}
	to.Env = append(to.Env, own.Env...)
	to.DeviceNodes = append(slices.Clone(to.DeviceNodes), own.DeviceNodes...)
	to.Hooks = append(slices.Clone(to.Hooks), own.Hooks...)
	if d.AdminAccess {
		return nil // a look
	}
	to.Env = append(to.Env, nccl.Environment(d.NIC.nccl(), c.nics())...)
	if topology != nil {
		to.Env = append(to.Env, "NCCL_TOPO_FILE="+topology.ContainerPath)
		to.Mounts = append(slices.Clone(to.Mounts), topology)
	}
	return nil
}

// variable is a device's name as that of an environment variable.
func variable(name string) string {
	return "DOVETAIL_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
