package class_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// offered is what one GPU of a dgx-h100 publishes for classes, by name.
func offered(t *testing.T, kept []string, sharing machine.Sharing, classes ...v1alpha1.PartitionClass) (devices map[string]resourceapi.Device, err error) {
	t.Helper()
	m := simulatortest.Describe(t, "dgx-h100")
	m.GPUs, m.NICs, m.Sharing = m.GPUs[:1], nil, sharing
	wanted, err := class.WantedOn(classes, map[string]string{"pool": "b"}, m.GPUs)
	if err != nil {
		t.Fatal(err)
	}
	offer, err := wanted.Offer(&m)
	if got := len(offer.Names()); got != len(catalog.Build(offer.Machine, catalog.Options{Offer: offer}).Devices) {
		t.Errorf("%d names of what is published", got)
	}
	names := map[string]bool{}
	for _, name := range kept {
		names[name] = true
	}
	offer.Keep(names)
	devices = map[string]resourceapi.Device{}
	for _, d := range catalog.Build(offer.Machine, catalog.Options{Offer: offer}).Devices {
		devices[d.Name] = d
	}
	if len(m.Sharing.Sizes) != len(sharing.Sizes) {
		t.Error("the machine was changed")
	}
	return devices, err
}

func sameNames(t *testing.T, devices map[string]resourceapi.Device, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(devices)); !slices.Equal(got, want) {
		t.Errorf("published: %q\nwant %q", got, want)
	}
}

var always = []string{"gpu-1b-00", "mps-1b-00", "timeslice-1b-00", "monitor-1b-00"}

func TestOffer(t *testing.T) {
	small := partitionClass(t, "small", `{shape: {mps: {memory: 10Gi, compute: 25}}}`)
	third := partitionClass(t, "third", `{shape: {mig: {profile: 3g.40gb}}}`)
	devices, err := offered(t, nil, machine.Sharing{}, small, third)
	if err != nil {
		t.Fatal(err)
	}
	sameNames(t, devices, append(always[:4:4], "mps-1b-00-small", "mig-1b-00-3g40gb-0", "mig-1b-00-3g40gb-4")...)
	if memory := devices["mps-1b-00-small"].Capacity["memory"].RequestPolicy.Default; memory.Value() != 10<<30 {
		t.Errorf("a share has %s by default", memory)
	}
	none, err := offered(t, nil, machine.Sharing{})
	if err != nil || len(none) != 4+25 {
		t.Errorf("without classes: %d devices, %v", len(none), err)
	}
}

// What claims may have stays, with a taint, whether or not anybody knows what it was.
func TestKept(t *testing.T) {
	third := partitionClass(t, "third", `{shape: {mig: {profile: 3g.40gb}}}`)
	retired := partitionClass(t, "retired", `{shape: {mps: {memory: 10Gi}}, published: false}`)
	elsewhere := partitionClass(t, "elsewhere", `{shape: {timeSlice: {clients: 4}}, hardware: {nodeSelector: {matchLabels: {pool: a}}}}`)
	kept := []string{"mig-1b-00-1g10gb-4", "mig-1b-00-3g40gb-4", "mps-1b-00-gone", "mps-1b-00-retired", "timeslice-1b-00-elsewhere", "gpu-1b-00", "mig-99-00-1g10gb-0", "gpu-1b-00/memory-unit-3"}
	devices, err := offered(t, kept, machine.Sharing{}, third, retired, elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	leaving := []string{"mig-1b-00-1g10gb-4", "mps-1b-00-gone", "mps-1b-00-retired", "timeslice-1b-00-elsewhere"}
	sameNames(t, devices, append(append(always[:4:4], "mig-1b-00-3g40gb-0", "mig-1b-00-3g40gb-4"), leaving...)...)
	for name, d := range devices {
		tainted := slices.ContainsFunc(d.Taints, func(taint resourceapi.DeviceTaint) bool {
			return taint.Key == "dovetail.dev/leaving" && taint.Effect == resourceapi.DeviceTaintEffectNoSchedule
		})
		if tainted != slices.Contains(leaving, name) {
			t.Errorf("%s is leaving: %t", name, tainted)
		}
	}
	for name, want := range map[string]int64{"mps-1b-00-gone": machine.MinShare, "mps-1b-00-retired": 10 << 30} {
		if memory := devices[name].Capacity["memory"].RequestPolicy.Default; memory.Value() != want {
			t.Errorf("%s: a share has %s by default", name, memory)
		}
	}
	if clients := devices["timeslice-1b-00-elsewhere"].Capacity["clients"].Value; clients.Value() != 4 {
		t.Errorf("clients: %s", clients.String())
	}
}

// A class that is changed to a size which a GPU does not have takes away no share that
// claims have of that GPU: without it the GPU would be given to others.
func TestKeptOfASizeThatNoLongerFits(t *testing.T) {
	const share = "mps-1b-00-small"
	large := partitionClass(t, "small", `{shape: {mps: {memory: 100Gi}}}`)
	own := machine.Sharing{Sizes: []machine.Size{{Name: "own", Kind: machine.KindTimeSlice, Memory: 100 << 30}}}
	devices, err := offered(t, []string{share, "timeslice-1b-00-own"}, own, large)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{share, "timeslice-1b-00-own"} {
		d, ok := devices[name]
		if !ok || len(d.Taints) != 1 || d.Taints[0].Key != catalog.TaintLeaving || len(d.ConsumesCounters) == 0 {
			t.Errorf("%s is published as %+v", name, d)
		}
	}
	if devices, err = offered(t, nil, own, large); err != nil || len(devices) != 4+25 {
		t.Errorf("error %v, and without claims %d devices", err, len(devices))
	}
}

// Sizes of the node's own configuration stay beside those of classes, and come first.
func TestOwnSizes(t *testing.T) {
	own := machine.Sharing{Sizes: []machine.Size{{Name: "own", Kind: machine.KindMPS, Memory: 1 << 30}, {Name: "both", Kind: machine.KindMPS, Memory: 2 << 30}}}
	both := partitionClass(t, "both", `{shape: {mps: {memory: 10Gi}}}`)
	other := partitionClass(t, "other", `{shape: {timeSlice: {memory: 10Gi}}}`)
	third := partitionClass(t, "third", `{shape: {mig: {profile: 7g.80gb}}}`)
	devices, err := offered(t, nil, own, both, other, third)
	if err == nil || !strings.Contains(err.Error(), "PartitionClass both: ") || strings.Contains(err.Error(), "PartitionClass other") {
		t.Errorf("error %v", err)
	}
	sameNames(t, devices, append(always[:4:4], "mps-1b-00-own", "mps-1b-00-both", "timeslice-1b-00-other", "mig-1b-00-7g80gb-0")...)
	if memory := devices["mps-1b-00-both"].Capacity["memory"].RequestPolicy.Default; memory.Value() != 2<<30 {
		t.Errorf("a share has %s by default", memory)
	}
}

// More conditions than there is room for are told, once.
func TestTooManyConditions(t *testing.T) {
	var classes []v1alpha1.PartitionClass
	for _, name := range strings.Split("abcdefghijk", "") {
		classes = append(classes, partitionClass(t, name, `{shape: {gpu: {}}, hardware: {nodeSelector: {matchExpressions: [{key: `+name+`, operator: DoesNotExist}]}}}`))
	}
	devices, err := offered(t, nil, machine.Sharing{}, classes...)
	var without []string
	for _, u := range class.UnofferedIn(err) {
		without = append(without, u.Class)
	}
	if !slices.Equal(without, []string{"j", "k"}) {
		t.Errorf("%v: error %v", without, err)
	}
	if got := *devices["gpu-1b-00"].Attributes[class.AttributeConditions].StringValue; strings.Count(got, ",") != 10 {
		t.Errorf("conditions %q", got)
	}
}
