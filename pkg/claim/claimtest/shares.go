package claimtest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
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

// shares compares control daemons, their namespaces and time slices with the records,
// and what the runtime is told of them.
func (w *World) shares(records []journal.Record) (differences []string, err error) {
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	state, err := w.Machine.State()
	if err != nil {
		return nil, err
	}
	daemons, namespaces, intervals := map[string]bool{}, map[string]bool{}, map[string]machine.TimeSlice{}
	for _, r := range records {
		if r.Entry == nil || r.Entry.Claim.Namespace == "" {
			continue
		}
		steps, err := stepsOf(r.Entry)
		if err != nil {
			return nil, err
		}
		told, _ := os.ReadFile(w.path("cdi", "dovetail.dev-claim-"+r.UID+".json"))
		for i, s := range steps {
			pipe := ""
			switch made := madeBy(r.Entry.Steps[i]); s.Kind {
			case plan.StartMPS:
				daemons[fmt.Sprint(made.Devices)] = true
				pipe = made.MPS.Pipe
			case plan.MakeNamespace:
				namespaces[s.Namespace] = true
				pipe = made.Pipe
			case plan.SetTimeSlice:
				intervals[s.GPU] = s.Interval
			default:
			}
			if told != nil && !strings.Contains(string(told), pipe) {
				differ("the CDI specification of claim %s knows nothing of %s", r.Entry.Claim, pipe)
			}
		}
	}
	for _, d := range state.MPS {
		if !daemons[fmt.Sprint(d.Devices)] {
			differ("a control daemon over %q is of no claim", d.Devices)
		}
		delete(daemons, fmt.Sprint(d.Devices))
		for name := range d.Namespaces {
			if !namespaces[name] {
				differ("namespace %s is of no claim", name)
			}
			delete(namespaces, name)
		}
	}
	for devices := range daemons {
		differ("a control daemon over %s is on record and does not run", devices)
	}
	for name := range namespaces {
		differ("namespace %s is on record and does not exist", name)
	}
	for i := range state.GPUs {
		gpu := state.GPU(i)
		want := machine.TimeSliceDefault
		if interval, ok := intervals[gpu.Spec.UUID]; ok {
			want = interval
		}
		if got := gpu.TimeSliceOf(); got != want {
			differ("%s has time slice %s, want %s", gpu.Spec.Address, got, want)
		}
	}
	return differences, nil
}

// made is what a step's outcome says of control daemons; nothing where there is none.
type made struct {
	Devices []string           `json:"devices"`
	MPS     hardware.MPSDaemon `json:"mps"`
	Pipe    string             `json:"pipe"`
}

func madeBy(s journal.Step) (m made) {
	_ = json.Unmarshal(s.Outcome, &m) // a step that is not done is told of by itself
	return m
}
