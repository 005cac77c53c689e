package usage

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/controller/compact"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
	"github.com/dovetail-dra/dovetail/test/sched"
)

var specs = map[string]string{
	"one":   `{shape: {mig: {profile: 1g.10gb}}}`,
	"three": `{shape: {mig: {memory: 35Gi}}}`,
	"whole": `{shape: {gpu: {}}}`,
	"any":   `{shape: {mps: {}}}`,
	"small": `{shape: {mps: {memory: 10Gi, compute: 30}}}`,
	"turn":  `{shape: {timeSlice: {clients: 3}}}`,
	"none":  `{shape: {mig: {profile: 9g.99gb}}}`,
}

func partitionClass(t testing.TB, name string) v1alpha1.PartitionClass {
	t.Helper()
	var c v1alpha1.PartitionClass
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, "metadata: {name: %s}\nspec: %s", name, specs[name]), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// cluster is the scheduler's own allocator, and a store that is told what it is told.
type cluster struct {
	*sched.Scheduler
	*Store
	classes map[string]resourceapi.DeviceClassSpec
	claims  int
}

func newCluster(t *testing.T, nodes ...string) *cluster {
	t.Helper()
	c := &cluster{sched.New(), New(), map[string]resourceapi.DeviceClassSpec{}, 0}
	var classes []v1alpha1.PartitionClass
	for name := range specs {
		classes = append(classes, partitionClass(t, name))
	}
	for i := range classes {
		compiled, err := class.Compile(&classes[i])
		if err != nil {
			t.Fatal(err)
		}
		c.classes[classes[i].Name] = compiled.DeviceClass()
		c.Add(classes[i].Name, compiled.DeviceClass())
	}
	var small compact.Slices
	for _, node := range nodes {
		m := simulatortest.Describe(t, node)
		c.publish(t, node, m, classes, &small)
	}
	return c
}

func (c *cluster) publish(t *testing.T, node string, m machine.Machine, classes []v1alpha1.PartitionClass, small *compact.Slices) {
	t.Helper()
	wanted, err := class.WantedOn(classes, nil, m.GPUs)
	if err != nil {
		t.Fatal(err)
	}
	m.Sharing.Sizes = wanted.Sizes(&m.GPUs[0])
	c.Publish(node, catalog.Build(m, catalog.Options{}))
	for _, s := range c.Slices(node) {
		compacted, err := small.Transform(s)
		if err != nil {
			t.Fatal(err)
		}
		c.SetSlice(compacted.(*resourceapi.ResourceSlice))
	}
}

// claim one device of a class, if there is one.
func (c *cluster) claim(t *testing.T, class string) *resourceapi.ResourceClaim {
	t.Helper()
	c.claims++
	claim := sched.Claim(fmt.Sprint("claim-", c.claims), sched.RequestOf("device", class))
	node, err := c.Allocate(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	if node == "" {
		return nil
	}
	return claim
}

func (c *cluster) tell(t *testing.T, claim *resourceapi.ResourceClaim) bool {
	t.Helper()
	compacted, err := compact.Claim(claim)
	if err != nil {
		t.Fatal(err)
	}
	return c.SetClaim(compacted.(*resourceapi.ResourceClaim))
}

func (c *cluster) count(t *testing.T, class string) Counts {
	t.Helper()
	spec := c.classes[class]
	counts, err := c.Count(t.Context(), class, &spec)
	if err != nil {
		t.Fatal(err)
	}
	return counts
}
