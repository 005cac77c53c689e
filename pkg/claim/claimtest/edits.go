package claimtest

import (
	"fmt"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/cdi"
)

// edits stand for nvcdi's, which needs a driver's files and a library.
type edits struct{}

func (edits) Common() (*specs.ContainerEdits, error) { return &specs.ContainerEdits{}, nil }

func (edits) GPU(uuid string) (*specs.ContainerEdits, error) {
	return &specs.ContainerEdits{DeviceNodes: []*specs.DeviceNode{{Path: "/dev/" + uuid}}}, nil
}

func (e edits) Monitor(gpu string) (*specs.ContainerEdits, error) { return e.GPU(gpu) }

func (edits) Partition(gpu string, p cdi.Partition) (*specs.ContainerEdits, error) {
	own := fmt.Sprintf("/dev/%s/gpu%d/gi%d/ci%d", gpu, p.GPUMinor, p.GPUInstance, p.ComputeInstance)
	return &specs.ContainerEdits{DeviceNodes: []*specs.DeviceNode{{Path: "/dev/" + gpu}, {Path: own}}}, nil
}

func (edits) NIC(nic *cdi.NIC) (*specs.ContainerEdits, error) {
	return cdi.NewNVIDIA(cdi.NVIDIAOptions{Hook: cdi.Hook{Path: "/opt/dovetail-hook"}}).NIC(nic)
}

func (edits) MemoryLimit(d cdi.Device) *specs.ContainerEdits {
	return &specs.ContainerEdits{Env: []string{fmt.Sprintf("LIMIT_%s=%d", d.GPU, d.MemoryLimit)}}
}
