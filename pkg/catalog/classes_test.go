package catalog_test

import (
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// threeClasses are an administrator's.
var threeClasses = map[string]string{
	"small":   `{shape: {mig: {memory: 10G}}}`,
	"shared":  `{shape: {mps: {memory: 10Gi, compute: 25}}, hardware: {nodeSelector: {matchLabels: {pool: notebooks}}}}`,
	"trainer": `{shape: {gpu: {}}, hardware: {nodeSelector: {matchLabels: {pool: notebooks}}}}`,
}

func TestClasses(t *testing.T) {
	var classes []v1alpha1.PartitionClass
	for name, spec := range threeClasses {
		c := v1alpha1.PartitionClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := yaml.UnmarshalStrict([]byte(spec), &c.Spec); err != nil {
			t.Fatal(err)
		}
		classes = append(classes, c) // in any order
	}
	// GPUs of eight models, half of them in MIG mode.
	m := simulatortest.Describe(t, "mixed")
	m.GPUs = append(m.GPUs, simulatortest.Describe(t, "mig-fleet").GPUs...)
	slices.SortFunc(m.GPUs, func(a, b machine.GPU) int { return a.Address.Compare(b.Address) })
	m.Sharing.Sizes = fiveSizes.Sizes[:1]
	publish := func() []catalog.Slice {
		wanted, err := class.WantedOn(classes, map[string]string{"pool": "notebooks"}, m.GPUs)
		if err != nil {
			t.Fatal(err)
		}
		offer, err := wanted.Offer(&m)
		if err != nil {
			t.Fatal(err)
		}
		// Claims have these: of another profile, of a class that is gone, and what is offered.
		offer.Keep(map[string]bool{"mig-17-00-2g10gb-2": true, "mps-25-00-gone": true, "gpu-25-00": true})
		pool := catalog.Build(offer.Machine, catalog.Options{Offer: offer})
		unique(t, pool)
		attributeNames{}.same(t, pool)
		policies(t, pool)
		return pool.Slices()
	}
	published := publish()
	golden(t, "classes", published)
	withinLimits(t, published)
	if again := publish(); !reflect.DeepEqual(again, published) {
		t.Error("the same classes give other slices")
	}
}
