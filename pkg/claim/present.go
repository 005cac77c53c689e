package claim

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// present makes sure that the hardware is really there now, answers, and is what it
// was when it was last described. again says that the claim was prepared before.
func (m *Manager) present(ctx context.Context, devices []plan.Device, again bool) error {
	for _, d := range devices {
		if d.AdminAccess {
			continue
		}
		var err error
		if d.GPU != "" {
			err = m.answers(ctx, d)
			if err == nil {
				err = m.unchanged(ctx, d)
			}
		}
		if err == nil && d.NIC != nil {
			err = m.atHand(ctx, d, again)
		}
		if err != nil {
			return fmt.Errorf("request %s: device %s: %w", d.Request, d.Name, err)
		}
	}
	return nil
}

// answers refuses a GPU that does not answer, and what its compute mode rules out. Who is
// asked for partitions next need not answer twice.
func (m *Manager) answers(ctx context.Context, d plan.Device) error {
	if _, asked := m.mayBePartitioned(d); asked && d.Kind != machine.KindTimeSlice {
		return nil
	}
	mode, err := m.GPUs.ComputeMode(ctx, d.GPU)
	switch {
	case errors.Is(err, failure.Unsupported):
		return nil
	case err != nil:
		return err
	}
	return takesTurns(d, mode)
}

// takesTurns refuses a time slice of a GPU that takes one process, or none: nobody but an
// administrator sets that where no claim has the GPU otherwise.
func takesTurns(d plan.Device, mode machine.ComputeMode) error {
	if d.Kind != machine.KindTimeSlice || mode == machine.ComputeModeDefault {
		return nil
	}
	return failure.New(failure.Conflict,
		"GPU %s was set to compute mode %s by hand, in which processes cannot take turns: set it to Default, by nvidia-smi -i %s -c 0", d.GPU, mode, d.GPU)
}

// mayBePartitioned says whether others than claims could have changed partitions that a
// device is, or must not have.
func (m *Manager) mayBePartitioned(d plan.Device) (gpu *machine.GPU, could bool) {
	gpu, known := m.Machine().GPU(d.GPU)
	return gpu, known && gpu.MIG.Capable && (d.Kind != machine.KindMIG || d.Static != nil)
}

// unchanged refuses a GPU that was partitioned by hand, and a partition that was
// taken apart by hand, since it was last described.
func (m *Manager) unchanged(ctx context.Context, d plan.Device) error {
	gpu, could := m.mayBePartitioned(d)
	switch {
	case !could:
		return nil
	case d.Static == nil:
		return m.settleMode(ctx, gpu)
	}
	now, err := m.GPUs.Partitions(ctx, d.GPU)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(now.Instances, func(i machine.GPUInstance) bool { return reflect.DeepEqual(&i, d.Static) }) {
		return failure.New(failure.Conflict,
			"GPU instance %d was destroyed or changed by hand a moment ago: delete the Pod to have it scheduled again", d.Static.ID)
	}
	return nil
}

// vacant makes sure that there is room for the partitions that are to be made.
func (m *Manager) vacant(ctx context.Context, steps []plan.Step) error {
	for _, s := range steps {
		if s.Kind != plan.MakeGPUInstance {
			continue
		}
		gpu, known := m.Machine().GPU(s.GPU)
		if !known {
			return failure.New(failure.Absent, "partition %s: GPU %s is gone", s.Partition.Device, s.GPU)
		}
		now, err := m.GPUs.Partitions(ctx, s.GPU)
		if err != nil {
			return fmt.Errorf("partition %s: %w", s.Partition.Device, err)
		}
		if err := refuseTaken(gpu, now, s.Partition); err != nil {
			return err
		}
	}
	return nil
}
