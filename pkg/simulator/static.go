package simulator

import (
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
)

// CheckPartitions says whether the GPU can have the partitions that it is to have
// after boot. The error names the first that it cannot.
func (g GPUSpec) CheckPartitions() error {
	m, err := model.Lookup(g.Model)
	switch {
	case err != nil:
		return err
	case len(g.Partitions) == 0:
		return nil
	case !g.MIG:
		return fmt.Errorf("%s needs MIG mode: write mig: true", g.Partitions[0].Profile)
	}
	return GPU{Spec: &g, Model: m, GPUState: &GPUState{MIGEnabled: true}}.partition()
}

// partition makes what the description says.
func (g GPU) partition() error {
	for _, wanted := range g.Spec.Partitions {
		if _, err := g.makePartition(wanted.Profile, &wanted.Start); err != nil {
			return err
		}
	}
	return nil
}

// makePartition makes a GPU instance with a compute instance that spans it.
func (g GPU) makePartition(profile string, start *int) (machine.GPUInstance, error) {
	p, at, err := g.Model.MIG.Find(profile, start)
	if err != nil {
		return machine.GPUInstance{}, failure.New(failure.Invalid, "GPU %s: %w", g.Spec.UUID, err)
	}
	made, err := g.makeGPUInstance(p.ID, at)
	if err != nil {
		return made, err
	}
	in, _ := g.Instance(made.ID)
	_, err = g.makeComputeInstance(in, p.ComputeSlices)
	return *in, err
}

// MakePartition makes a GPU instance and a compute instance that spans it, as
// nvidia-smi mig does; where start is nil the simulator picks a placement.
func (m *Machine) MakePartition(gpu, profile string, start *int) (machine.GPUInstance, error) {
	var made machine.GPUInstance
	err := m.change(gpu, CallMakeGPUInstance, func(_ *State, g GPU) (err error) {
		made, err = g.makePartition(profile, start)
		return err
	})
	return made, err
}

// DestroyPartition destroys a GPU instance and its compute instances. It stops at the
// first that cannot be.
func (m *Machine) DestroyPartition(gpu string, gpuInstance int) error {
	g, err := m.usable(gpu)
	if err != nil {
		return err
	}
	in, err := g.instance(gpuInstance)
	if err != nil {
		return err
	}
	for _, c := range in.ComputeInstances {
		if err := m.DestroyComputeInstance(gpu, gpuInstance, c.ID); err != nil {
			return err
		}
	}
	return m.DestroyGPUInstance(gpu, gpuInstance)
}
