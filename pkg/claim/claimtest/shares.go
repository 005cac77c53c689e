package claimtest

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// Share is one share of a device as the scheduler gives it.
type Share struct {
	Request, Device, ID string
	Memory              string // a quantity
	Compute             int    // percent
}

// AllocateShares is Allocate for shares.
func (w *World) AllocateShares(name, parameters string, shares ...Share) (*resourceapi.ResourceClaim, error) {
	c, err := w.Allocate(name, parameters)
	if err != nil {
		return nil, err
	}
	for _, s := range shares {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: s.Request, Driver: catalog.DriverName, Pool: Pool, Device: s.Device, ShareID: ptr.To(types.UID(s.ID)),
			ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{
				"memory": resource.MustParse(s.Memory), "compute": *resource.NewQuantity(int64(s.Compute), resource.DecimalSI),
				"clients": resource.MustParse("1"),
			},
		})
	}
	return c, w.Store(c)
}

// shares compares control daemons, their namespaces and time slices with the records.
func (w *World) shares(records []journal.Record) (differences []string, err error) {
	daemons, namespaces, intervals := map[string]bool{}, map[string]bool{}, map[string]machine.TimeSlice{}
	for _, r := range records {
		if r.Entry == nil {
			continue
		}
		steps, err := stepsOf(r.Entry)
		if err != nil {
			return nil, err
		}
		for _, s := range steps {
			switch s.Kind {
			case plan.StartMPS:
				daemons[members(s.Set)] = true
			case plan.MakeNamespace:
				namespaces[s.Namespace] = true
			case plan.SetTimeSlice:
				intervals[s.GPU] = s.Interval
			}
		}
	}
	state, err := w.Machine.State()
	if err != nil {
		return nil, err
	}
	if len(state.MPS) != len(daemons) {
		differences = append(differences, fmt.Sprintf("%d control daemons run, %d are on record", len(state.MPS), len(daemons)))
	}
	for _, d := range state.MPS {
		for name := range d.Namespaces {
			if !namespaces[name] {
				differences = append(differences, fmt.Sprintf("namespace %s is of no claim", name))
			}
			delete(namespaces, name)
		}
	}
	for name := range namespaces {
		differences = append(differences, fmt.Sprintf("namespace %s is on record and does not exist", name))
	}
	for i := range state.GPUs {
		gpu := state.GPU(i)
		want := machine.TimeSliceDefault
		if interval, ok := intervals[gpu.Spec.UUID]; ok {
			want = interval
		}
		if got := gpu.TimeSliceOf(); got != want {
			differences = append(differences, fmt.Sprintf("%s has time slice %s, want %s", gpu.Spec.Address, got, want))
		}
	}
	return differences, nil
}

// members names a set.
func members(set []plan.Member) string {
	names := make([]string, len(set))
	for i, m := range set {
		names[i] = m.GPU + m.Static
		if m.Partition != nil {
			names[i] += m.Partition.Device
		}
	}
	slices.Sort(names)
	return fmt.Sprint(names)
}
