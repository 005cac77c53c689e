package simulator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Device is what a CUDA process can use: a GPU, or a MIG device of one.
type Device struct {
	GPU
	UUID string
	// Instance has the IDs of a MIG device's GPU instance and compute instance; of a
	// whole GPU it is empty.
	Instance []int
	// Memory is what processes can allocate together, in bytes.
	Memory          uint64
	Multiprocessors int
}

// Device returns the device that CUDA_VISIBLE_DEVICES would name so: an index, or
// the UUID of a GPU or a MIG device. A GPU in MIG mode is none.
func (s *State) Device(name string) (Device, error) {
	if strings.HasPrefix(strings.ToUpper(name), "MIG-") {
		return s.migDevice(name)
	}
	g, err := s.usable(name)
	if err != nil {
		return Device{}, err
	}
	if g.MIGEnabled {
		return Device{}, failure.New(failure.Unsupported, "GPU %s is in MIG mode: use one of its MIG devices", g.Spec.UUID)
	}
	memory := g.Model.Memory
	if g.Has(FaultMemoryNotSupported) {
		memory = machine.Memory{}
	}
	return Device{GPU: g, UUID: g.Spec.UUID, Memory: memory.Usable(), Multiprocessors: g.Model.Multiprocessors}, nil
}

func (s *State) migDevice(uuid string) (Device, error) {
	for i := range s.GPUs {
		g := s.GPU(i)
		for _, in := range g.Instances {
			at := slices.IndexFunc(in.ComputeInstances, func(c machine.ComputeInstance) bool { return strings.EqualFold(c.UUID, uuid) })
			if at < 0 {
				continue
			}
			if _, err := s.usable(g.Spec.UUID); err != nil {
				return Device{}, err
			}
			ci := in.ComputeInstances[at]
			p, _ := g.Model.MIG.Profile(in.ProfileID)
			return Device{GPU: g, UUID: ci.UUID, Instance: []int{in.ID, ci.ID}, Memory: p.Memory,
				Multiprocessors: p.Multiprocessors * ci.ComputeSlices / p.ComputeSlices}, nil
		}
	}
	if err := s.loaded(); err != nil {
		return Device{}, err
	}
	return Device{}, failure.New(failure.Absent, "machine %q has no MIG device %s", s.Spec.Name, uuid)
}

// memoryPlace names what the device's memory is part of: compute instances of one
// GPU instance share it.
func (d Device) memoryPlace() string {
	if len(d.Instance) == 0 {
		return d.Spec.UUID
	}
	return fmt.Sprintf("%s/%d", d.Spec.UUID, d.Instance[0])
}

// MPSClients is how many clients MPS serves on the device: 48, from CUDA 13 on 60,
// and on a MIG device in proportion to its slices. 0 before Volta, where MPS is of
// another kind.
func (d Device) MPSClients(s *State) int {
	if d.Model.ComputeCapability.Major < 7 {
		return 0
	}
	clients := 48
	if s.Spec.Driver.CUDA.Major >= 13 {
		clients = 60
	}
	if len(d.Instance) > 0 {
		in, _ := d.GPU.Instance(d.Instance[0])
		clients = clients * d.slicesOf(in.ProfileID) / d.Model.MIG.Slices
	}
	return clients
}

// Branch is the driver's: 570 of 570.195.03.
func (s *State) Branch() int {
	branch, _, _ := strings.Cut(s.Spec.Driver.Version, ".")
	n, err := strconv.Atoi(branch)
	if err != nil {
		return 0
	}
	return n
}

// limitsCgroups: memory limits of cgroups came with the drivers of branch 615.
func (s *State) limitsCgroups() bool { return s.Branch() >= 615 }

// MPSProtocol is the latest that the driver's MPS speaks.
func (s *State) MPSProtocol() int {
	if s.Branch() >= 615 {
		return 3
	}
	return 2
}

// MultiUserOption says whether the control daemon of protocol 2 knows
// -multiuser-server. From which branch on is an assumption.
func (s *State) MultiUserOption() bool { return s.Branch() >= 550 }
