package claimtest

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// wanted is a partition on record.
type wanted struct {
	*plan.Partition
	claim journal.Claim
}

// partitions compares each GPU's partitions with the records: those on record exist,
// are whole, and are what the runtime is told of; apart from them the GPU is as it was
// without any claim.
func (w *World) partitions(now *machine.Machine, records []journal.Record) (differences []string, err error) {
	all, owed := map[string][]wanted{}, map[string]bool{}
	for _, r := range records {
		if r.Entry == nil {
			continue
		}
		steps, err := stepsOf(r.Entry)
		if err != nil {
			return nil, err
		}
		for _, s := range steps {
			if s.Kind == plan.MakeGPUInstance {
				all[s.GPU] = append(all[s.GPU], wanted{s.Partition, r.Entry.Claim})
			}
			if s.Kind == plan.EnableMIG && r.Entry.Claim.Namespace == "" {
				owed[s.GPU] = true
			}
		}
	}
	for i := range now.GPUs {
		differences = append(differences, w.partitionsOf(&now.GPUs[i], all[now.GPUs[i].UUID], owed[now.GPUs[i].UUID])...)
	}
	return differences, nil
}

// stepsOf are the intents of a record.
func stepsOf(e *journal.Entry) ([]plan.Step, error) {
	steps := make([]plan.Step, len(e.Steps))
	for i, s := range e.Steps {
		if err := json.Unmarshal(s.Intent, &steps[i]); err != nil {
			return nil, fmt.Errorf("record of claim %s: step %d: %w", e.Claim, i, err)
		}
	}
	return steps, nil
}

// partitionsOf compares one GPU's; owed says that its MIG mode is to go off, and may
// still be on.
func (w *World) partitionsOf(gpu *machine.GPU, wanted []wanted, owed bool) (differences []string) {
	others := slices.Clone(gpu.MIG.Instances)
	for _, p := range wanted {
		i := slices.IndexFunc(others, func(i machine.GPUInstance) bool { return p.Is(&i) })
		if i < 0 {
			differences = append(differences, fmt.Sprintf("partition %s is on record and does not exist", p.Device))
			continue
		}
		if c := others[i].ComputeInstances; len(c) != 1 {
			differences = append(differences, fmt.Sprintf("partition %s has %d compute instances", p.Device, len(c)))
		} else if told, err := os.ReadFile(w.path("cdi", "dovetail.dev-claim-"+p.claim.UID+".json")); err == nil && !strings.Contains(string(told), c[0].UUID) {
			differences = append(differences, fmt.Sprintf("partition %s is %s, of which the CDI specification of claim %s knows nothing", p.Device, c[0].UUID, p.claim))
		}
		others = slices.Delete(others, i, i+1)
	}
	if w.untouched == nil {
		return differences
	}
	before, known := w.untouched.GPU(gpu.UUID)
	if !known {
		return differences
	}
	if len(others)+len(before.MIG.Instances) > 0 && !reflect.DeepEqual(others, before.MIG.Instances) {
		differences = append(differences, fmt.Sprintf("%s has instances that no claim has: %+v, at first %+v", gpu.Name(), others, before.MIG.Instances))
	}
	if want := before.MIG.Enabled || len(wanted) > 0; gpu.MIG.Enabled != want && !owed {
		differences = append(differences, fmt.Sprintf("MIG mode of %s is %t, want %t", gpu.Name(), gpu.MIG.Enabled, want))
	}
	return differences
}
