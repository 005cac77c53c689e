package sched

import (
	"fmt"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	pclass "github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// administered is a cluster of one node, a DGX H100, with PartitionClasses.
type administered struct {
	*Scheduler
	machine machine.Machine
}

func administer(t *testing.T, classes ...string) *administered {
	t.Helper()
	a := &administered{New(), simulatortest.Describe(t, "dgx-h100")}
	for _, c := range partitionClasses(t, classes) {
		compiled, err := pclass.Compile(&c)
		if err != nil {
			t.Fatal(err)
		}
		a.OfferClass(c.Name, compiled.DeviceClass())
	}
	a.asks(t, nil, classes...)
	return a
}

// asks has the node publish what these classes ask for, and what claims have.
func (a *administered) asks(t *testing.T, has []string, classes ...string) {
	t.Helper()
	wanted, err := pclass.WantedOn(partitionClasses(t, classes), map[string]string{"pool": "gpus"}, a.machine.GPUs)
	if err != nil {
		t.Fatal(err)
	}
	offer, err := wanted.Offer(&a.machine)
	if err != nil {
		t.Fatal(err)
	}
	keep := map[string]bool{}
	for _, name := range has {
		keep[name] = true
	}
	offer.Keep(keep)
	a.Publish(node, catalog.Build(offer.Machine, catalog.Options{Offer: offer}))
}

// partitionClasses are written "name: spec".
func partitionClasses(t *testing.T, written []string) []v1alpha1.PartitionClass {
	t.Helper()
	var classes []v1alpha1.PartitionClass
	for _, w := range written {
		name, spec, _ := strings.Cut(w, ": ")
		c := v1alpha1.PartitionClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := yaml.UnmarshalStrict([]byte(spec), &c.Spec); err != nil {
			t.Fatal(err)
		}
		classes = append(classes, c)
	}
	return classes
}

const (
	smallClass   = "small: {shape: {mig: {memory: 9Gi}}, extendedResourceName: example.com/gpu-small}"
	sharedClass  = "shared: {shape: {mps: {memory: 10Gi, compute: 25}}, hardware: {nodeSelector: {matchLabels: {pool: gpus}}}, extendedResourceName: example.com/gpu-shared}"
	largeClass   = "large: {shape: {mps: {memory: 30Gi}}}"
	trainerClass = "trainer: {shape: {pair: {closeness: PXB}}, hardware: {nodeSelector: {matchLabels: {pool: gpus}}}}"
	onFirstGPU   = `device.attributes["resource.kubernetes.io"].pciBusID == "0000:1b:00.0"`
)

// Three classes share out a node: each gets its own shape, and none what another has.
func TestThreeClassesOnOneNode(t *testing.T) {
	a := administer(t, smallClass, sharedClass, trainerClass)
	small := a.gets(t, Claim("small", RequestOf("r", "small")), "mig-1b-00-1g10gb-0")
	// A pair and shares go by the GPU that is in parts.
	a.gets(t, Claim("trainer", RequestOf("r", "trainer")), "pair-43-00-40-00")
	for i := range 4 {
		a.gets(t, Claim(fmt.Sprint("shared-", i), RequestOf("r", "shared")), "mps-52-00-shared")
	}
	a.gets(t, Claim("fifth", RequestOf("r", "shared")), "mps-61-00-shared")
	for i := 1; i < 7; i++ {
		a.gets(t, Claim(fmt.Sprint("small-", i), RequestOf("r", "small")), fmt.Sprint("mig-1b-00-1g10gb-", i))
	}
	a.gets(t, Claim("one GPU more", RequestOf("r", "small")), "mig-9d-00-1g10gb-0")
	// What no class asks for nobody gets, by whatever class.
	a.gets(t, Claim("large partition", mig("p", "3g.40gb")))
	a.gets(t, Claim("no longer whole", Request("g", machine.KindGPU, onFirstGPU)))
	a.Release(small)
	a.gets(t, Claim("in its place", RequestOf("r", "small")), "mig-1b-00-1g10gb-0")
}

// Shares of two classes cannot be out on one GPU at a time.
func TestClassesExcludeEachOther(t *testing.T) {
	a := administer(t, sharedClass, largeClass)
	on := func(class string) *resourceapi.ResourceClaim {
		return Claim(class+" on the first GPU", RequestOf("r", class, onFirstGPU))
	}
	first := a.gets(t, on("shared"), "mps-1b-00-shared")
	a.gets(t, on("large"))
	a.gets(t, Claim("large", RequestOf("r", "large")), "mps-43-00-large")
	a.Release(first)
	first = a.gets(t, on("large"), "mps-1b-00-large")
	second := Claim("another", RequestOf("r", "large", onFirstGPU))
	a.gets(t, second, "mps-1b-00-large")
	a.gets(t, on("shared"))
	a.Release(first)
	a.gets(t, on("shared")) // one is left
	a.Release(second)
	a.gets(t, on("shared"), "mps-1b-00-shared")
}

// A Pod without a claim gets its class's size, and it is counted.
func TestExtendedResource(t *testing.T) {
	a := administer(t, smallClass, sharedClass, trainerClass)
	for i := range 5 {
		claim := a.gets(t, Claim(fmt.Sprint("pod-", i), a.RequestOfExtended("example.com/gpu-shared", 1)), []string{"mps-1b-00-shared", "mps-43-00-shared"}[i/4])
		if consumed(claim, "memory") != 10*gib || consumed(claim, "compute") != 25 || consumed(claim, "clients") != 1 {
			t.Errorf("pod %d: %v", i, claim.Status.Allocation.Devices.Results[0].ConsumedCapacity)
		}
	}
	a.gets(t, Claim("three", a.RequestOfExtended("example.com/gpu-small", 3)), "mig-52-00-1g10gb-0", "mig-52-00-1g10gb-1", "mig-52-00-1g10gb-2")
}

// A class that goes, or changes, takes nothing out of the count: what claims have stays
// theirs, and nobody gets more of it.
func TestClassGoesWhileItIsUsed(t *testing.T) {
	a := administer(t, smallClass, sharedClass, "third: {shape: {mig: {profile: 3g.40gb}}}")
	partition := a.gets(t, Claim("partition", RequestOf("r", "small", onFirstGPU)), "mig-1b-00-1g10gb-0")
	other := `device.attributes["resource.kubernetes.io"].pciBusID == "0000:43:00.0"`
	share := a.gets(t, Claim("share", RequestOf("r", "shared", other)), "mps-43-00-shared")

	a.asks(t, []string{"mig-1b-00-1g10gb-0", "mps-43-00-shared"}, "third: {shape: {mig: {profile: 3g.40gb}}}")
	for _, where := range []string{onFirstGPU, other} {
		a.gets(t, Claim("whole", Request("g", machine.KindGPU, where)))
		a.gets(t, Claim("shares", Request("s", machine.KindMPS, where)))
	}
	a.gets(t, Claim("another share", RequestOf("r", "shared")))
	a.gets(t, Claim("another partition", RequestOf("r", "small")))
	a.gets(t, Claim("overlapping", RequestOf("r", "third", onFirstGPU)), "mig-1b-00-3g40gb-4")
	a.gets(t, Claim("on a GPU of shares", RequestOf("r", "third", other)))

	a.Release(partition)
	a.Release(share)
	a.gets(t, Claim("taken again", RequestOf("r", "shared"))) // not yet published otherwise
	a.asks(t, nil, "third: {shape: {mig: {profile: 3g.40gb}}}")
	a.gets(t, Claim("whole GPU", Request("g", machine.KindGPU, other)), "gpu-43-00")
	a.gets(t, Claim("other half", RequestOf("r", "third", onFirstGPU)), "mig-1b-00-3g40gb-0")
}
