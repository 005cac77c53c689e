package simulator

import (
	"fmt"

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
		if err := g.makePartition(wanted.Profile, &wanted.Start); err != nil {
			return err
		}
	}
	return nil
}

func (g GPU) makePartition(profile string, start *int) error {
	p, at, err := g.Model.MIG.Find(profile, start)
	if err != nil {
		return err
	}
	made, err := g.makeGPUInstance(p.ID, at)
	if err != nil {
		return err
	}
	in, _ := g.Instance(made.ID)
	_, err = g.makeComputeInstance(in, p.ComputeSlices)
	return err
}
