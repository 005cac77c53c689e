// Package cdi writes one Container Device Interface specification a claim, from
// which the container runtime takes device nodes, mounts, environment and hooks.
// NVIDIA's part of it is nvcdi's.
package cdi

import (
	"fmt"
	"slices"
	"strings"

	specs "tags.cncf.io/container-device-interface/specs-go"
)

// kind of all our CDI devices: "<vendor>/<class>".
const kind = "dovetail.dev/claim"

// annotationRecord holds a copy of the claim's journal record: when the journal
// is damaged, it is rebuilt from here.
const annotationRecord = "dovetail.dev/record"

// Claim is what one specification describes.
type Claim struct {
	UID     string
	Devices []Device
	// Record is kept with the specification and comes back from Store.Record.
	Record []byte
	// Topology is a file for NCCL, in containers with a NIC; nil: they have none.
	Topology []byte
}

// Device is one device of a claim.
type Device struct {
	// Request that it was allocated for, "request/subrequest" for an alternative.
	Request string
	// Name in the node's pool.
	Name string
	// GPU is the GPU's UUID; empty for a NIC alone.
	GPU string
	// NIC of a device that has one.
	NIC *NIC
	// ShareID of a share: a claim can have several of one device.
	ShareID string
	// Partition of the GPU; nil for all of it.
	Partition *Partition
	// MemoryLimit is the most that a container's processes allocate of the GPU
	// together, in bytes, where the driver sees to it; 0 is no limit.
	MemoryLimit uint64
	// MPS is how containers find their control daemon; nil where they have none.
	MPS *MPS
	// AdminAccess is a look at the GPU: one that cannot be described at all, since
	// it is lost, must not keep an administrator from the others.
	AdminAccess bool
}

// Partition is a MIG device, as the driver knows it while it exists.
type Partition struct {
	GPUMinor                     int // the N of the GPU's /dev/nvidiaN
	GPUInstance, ComputeInstance int // IDs: the latter within the former
	UUID                         string
}

// DeviceID is the fully qualified name under which the runtime finds the device.
func DeviceID(claimUID string, d Device) string {
	return kind + "=" + deviceName(claimUID, d)
}

// deviceName is unique over all claims, so that a runtime's cache of
// specifications never answers with another claim's device.
func deviceName(claimUID string, d Device) string {
	name := claimUID + "_" + strings.ReplaceAll(d.Request, "/", ".") + "_" + d.Name
	if d.ShareID != "" {
		name += "_" + d.ShareID
	}
	return name
}

// Edits are the edits to a container that devices take.
type Edits interface {
	// Common is what every container with a GPU needs: libraries, control nodes.
	Common() (*specs.ContainerEdits, error)
	// GPU is what one GPU adds; never without a device node.
	GPU(uuid string) (*specs.ContainerEdits, error)
	// Partition is what one partition of a GPU adds: what the GPU does, and what
	// opens that partition and no other. The partition need not exist yet.
	Partition(gpu string, p Partition) (*specs.ContainerEdits, error)
	// Monitor is what a look at a GPU adds: what the GPU does, and what shows all
	// partitions to who has no privileges, where the driver has it.
	Monitor(gpu string) (*specs.ContainerEdits, error)
	// MemoryLimit has the driver keep a container's processes to the device's
	// MemoryLimit.
	MemoryLimit(d Device) *specs.ContainerEdits
	// NIC is what a NIC adds: character devices, its name, and the hook that takes it
	// into the Pod.
	NIC(nic *NIC) (*specs.ContainerEdits, error)
}

// build composes the specification. Device edits name that device alone: a
// container that is given one device of a claim sees nothing of the others.
func build(c Claim, edits Edits, topology *specs.Mount) (*specs.Spec, error) {
	spec := &specs.Spec{Kind: kind, Annotations: map[string]string{annotationRecord: string(c.Record)}}
	if slices.ContainsFunc(c.Devices, func(d Device) bool { return d.GPU != "" }) {
		common, err := edits.Common()
		if err != nil {
			return nil, fmt.Errorf("describe the driver to containers: %w", err)
		}
		spec.ContainerEdits = *common
		// With CDI in charge, the NVIDIA runtime must add nothing of its own.
		spec.ContainerEdits.Env = append([]string{"NVIDIA_VISIBLE_DEVICES=void"}, common.Env...)
	}
	for _, d := range c.Devices {
		own, err := c.edits(d, edits, topology)
		if err != nil {
			return nil, fmt.Errorf("describe device %s to containers: %w", d.Name, err)
		}
		spec.Devices = append(spec.Devices, specs.Device{Name: deviceName(c.UID, d), ContainerEdits: *own})
	}
	var err error
	spec.Version, err = specs.MinimumRequiredVersion(spec)
	return spec, err
}

func (c *Claim) edits(d Device, from Edits, topology *specs.Mount) (*specs.ContainerEdits, error) {
	own := &specs.ContainerEdits{}
	if d.GPU != "" {
		kept, err := d.ofGPU(from)
		if err != nil && !d.AdminAccess {
			return nil, err
		}
		if err == nil {
			copied := *kept
			own = &copied
		}
		own.Env = append([]string{environment(d)}, own.Env...)
	}
	if d.MPS != nil {
		d.MPS.add(own)
	}
	if d.MemoryLimit > 0 {
		limit := from.MemoryLimit(d)
		own.Env = append(own.Env, limit.Env...)
		own.Hooks = append(slices.Clone(own.Hooks), limit.Hooks...)
	}
	if d.NIC == nil {
		return own, nil
	}
	return own, c.withNIC(own, d, from, topology)
}

func (d Device) ofGPU(from Edits) (*specs.ContainerEdits, error) {
	switch {
	case d.Partition != nil:
		return from.Partition(d.GPU, *d.Partition)
	case d.AdminAccess:
		return from.Monitor(d.GPU)
	}
	return from.GPU(d.GPU)
}

// environment tells a workload what it was given: one variable a device, so that
// devices of several claims add up: DOVETAIL_GPU_1B_00=GPU-…, and
// DOVETAIL_MIG_1B_00_1G10GB_4=MIG-… for a partition. NICs have DOVETAIL_NIC_1A_00=mlx5_0.
func environment(d Device) string {
	uuid := d.GPU
	if d.Partition != nil {
		uuid = d.Partition.UUID
	}
	return variable(d.Name) + "=" + uuid
}
