package catalog_test

import (
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

const gib = 1 << 30

var fiveSizes = machine.Sharing{TimeSliceClients: 4, Sizes: []machine.Size{
	{Name: "tiny", Kind: machine.KindMPS, Memory: machine.MinShare},
	{Name: "small", Kind: machine.KindMPS, Memory: 10 * gib, Compute: 25},
	{Name: "odd", Kind: machine.KindMPS, Memory: 3<<30 + 1, Compute: 33},
	{Name: "turn", Kind: machine.KindTimeSlice, Memory: 4 * gib},
	{Name: "huge", Kind: machine.KindMPS, Memory: 1 << 50, Compute: 100},
}}

func TestSizes(t *testing.T) {
	m := simulatortest.Describe(t, "mixed")
	m.Sharing = fiveSizes
	pool := catalog.Build(m, catalog.Options{})
	golden(t, "sizes", pool.Slices())
	attributeNames{}.same(t, pool)
	everythingCounts(t, m, pool)
}

// TestMemoryEnforcement is each GPU's own, for all of its shares.
func TestMemoryEnforcement(t *testing.T) {
	m := simulatortest.Describe(t, "mps-v3")
	m.Sharing = fiveSizes
	m.GPUs[1].LimitsCgroups = false
	seen := map[string]int{}
	for i, d := range catalog.Build(m, catalog.Options{}).Devices {
		attribute, shared := d.Attributes["memoryEnforcement"]
		if !shared {
			continue
		}
		want := "Strict"
		switch of := m.Devices()[i]; {
		case of.GPU.LimitsCgroups:
		case of.Kind == machine.KindMPS:
			want = "BestEffort"
		default:
			want = "None"
		}
		if seen[want]++; *attribute.StringValue != want {
			t.Errorf("%s: %s, want %s", d.Name, *attribute.StringValue, want)
		}
	}
	if len(seen) != 3 {
		t.Errorf("levels %v, want all", seen)
	}
}

// TestOddSharing: the API server takes the policies whatever the machine and the
// administrator come up with.
func TestOddSharing(t *testing.T) {
	for _, name := range machines.Names() {
		m := simulatortest.Describe(t, name)
		for _, clients := range []int{0, 1, 2, 1 << 40} {
			m.Sharing = machine.Sharing{TimeSliceClients: clients, Sizes: fiveSizes.Sizes}
			policies(t, catalog.Build(m, catalog.Options{}))
		}
		for _, usable := range []uint64{0, 1, machine.MinShare - 1, machine.MinShare, 2*machine.MinShare - 1, 2 * machine.MinShare, 47 * machine.MinShare} {
			for i := range m.GPUs {
				m.GPUs[i].Memory = machine.Memory{Total: usable}
			}
			policies(t, catalog.Build(m, catalog.Options{}))
		}
	}
}

// policies checks what the API server asks of request policies (k8s.io/kubernetes,
// pkg/apis/resource/validation), and what an allocation then relies on.
func policies(t *testing.T, pool catalog.Pool) {
	t.Helper()
	for _, d := range pool.Devices {
		shared := d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
		for name, capacity := range d.Capacity {
			policy := capacity.RequestPolicy
			switch {
			case policy == nil:
				continue
			case !shared:
				t.Errorf("device %s, %s: a policy, but only one claim can have it", d.Name, name)
			case policy.Default == nil || (policy.ValidRange == nil) == (len(policy.ValidValues) == 0):
				t.Errorf("device %s, %s: want a default, and either values or a range: %+v", d.Name, name, policy)
			case policy.ValidRange != nil && !validRange(capacity.Value, *policy.Default, *policy.ValidRange):
				t.Errorf("device %s, %s: of %s, by default %s, %+v", d.Name, name, capacity.Value.String(), policy.Default.String(), policy.ValidRange)
			case policy.ValidRange == nil && !validValues(capacity.Value, *policy.Default, policy.ValidValues):
				t.Errorf("device %s, %s: of %s, by default %s, %+v", d.Name, name, capacity.Value.String(), policy.Default.String(), policy.ValidValues)
			}
		}
	}
}

// validRange: default and maximum are whole steps above the minimum, none is more
// than there is, and there is room for one step.
func validRange(value, standard resource.Quantity, r resourceapi.CapacityRequestPolicyRange) bool {
	least, most, step := r.Min.Value(), r.Max.Value(), r.Step.Value()
	return least >= 0 && step > 0 && least <= standard.Value() && standard.Value() <= most && most <= value.Value() && least+step <= value.Value() &&
		(most-least)%step == 0 && (standard.Value()-least)%step == 0
}

// validValues: ten at most, in order, none twice, none more than there is, one of them the default.
func validValues(value, standard resource.Quantity, values []resource.Quantity) bool {
	found := false
	for i, v := range values {
		if v.Cmp(value) > 0 || i > 0 && v.Cmp(values[i-1]) <= 0 {
			return false
		}
		found = found || v.Cmp(standard) == 0
	}
	return found && len(values) <= 10
}

// A time slice has no multiprocessors of its own, and nothing is shared that has no
// memory to tell of.
func TestSharedCapacity(t *testing.T) {
	m := simulatortest.Describe(t, "dgx-h100")
	m.Sharing = machine.Sharing{TimeSliceClients: 4, Sizes: append(slices.Clone(fiveSizes.Sizes), machine.Size{Name: "third", Kind: machine.KindTimeSlice, Clients: 3})}
	usable := m.GPUs[0].Memory.Usable()
	found := map[string]resourceapi.Device{}
	for _, d := range catalog.Build(m, catalog.Options{}).Devices {
		found[d.Name] = d
	}
	for _, test := range []struct {
		device, capacity       string
		value, standard, least int64
		most                   int64
	}{
		{"mps-1b-00", "memory", int64(usable), int64(usable/48) &^ (machine.MinShare - 1), machine.MinShare, int64(usable) &^ (machine.MinShare - 1)},
		{"mps-1b-00", "compute", 100, 0, 0, 100},
		{"mps-1b-00", "clients", 48, 1, 1, 48},
		{"timeslice-1b-00", "memory", int64(usable), int64(usable/4) &^ (machine.MinShare - 1), machine.MinShare, int64(usable) &^ (machine.MinShare - 1)},
		{"timeslice-1b-00", "clients", 4, 1, 1, 4},
		{"mps-1b-00-small", "memory", int64(usable), 10 * gib, 10 * gib, 10 * gib},
		{"mps-1b-00-small", "compute", 100, 25, 25, 25},
		{"mps-1b-00-small", "clients", 48, 1, 1, 1},
		{"mps-1b-00-tiny", "compute", 100, 0, 0, 0},
		{"timeslice-1b-00-turn", "clients", 4, 1, 1, 1},
		{"timeslice-1b-00-third", "clients", 3, 1, 1, 1},
		{"timeslice-1b-00-third", "memory", int64(usable), int64(usable/3) &^ (machine.MinShare - 1), int64(usable/3) &^ (machine.MinShare - 1), int64(usable/3) &^ (machine.MinShare - 1)},
		{"timeslice-1b-00-turn", "memory", int64(usable), 4 * gib, 4 * gib, 4 * gib},
	} {
		capacity, ok := found[test.device].Capacity[resourceapi.QualifiedName(test.capacity)]
		if !ok || capacity.RequestPolicy == nil {
			t.Errorf("%s has no %s with a policy", test.device, test.capacity)
			continue
		}
		least, most := bounds(capacity.RequestPolicy)
		if got := [4]int64{capacity.Value.Value(), capacity.RequestPolicy.Default.Value(), least, most}; got != [4]int64{test.value, test.standard, test.least, test.most} {
			t.Errorf("%s, %s: value, default, least and most are %d", test.device, test.capacity, got)
		}
	}
	for _, name := range []string{"timeslice-1b-00", "timeslice-1b-00-turn"} {
		if _, ok := found[name].Capacity["compute"]; ok || len(found[name].Capacity) != 2 {
			t.Errorf("%s has capacity %v", name, found[name].Capacity)
		}
	}
	if _, ok := found["mps-1b-00-huge"]; ok {
		t.Error("a size larger than the GPU is offered")
	}
}

func bounds(policy *resourceapi.CapacityRequestPolicy) (least, most int64) {
	if values := policy.ValidValues; len(values) > 0 {
		return values[0].Value(), values[len(values)-1].Value()
	}
	return policy.ValidRange.Min.Value(), policy.ValidRange.Max.Value()
}
