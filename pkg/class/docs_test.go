package class_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// What the documentation shows can be used as it stands.
func TestExamples(t *testing.T) {
	content, err := os.ReadFile("../../docs/partition-classes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, examples, _ := strings.Cut(string(content), "```yaml\n")
	examples, _, _ = strings.Cut(examples, "```")
	names := slices.Sorted(maps.Keys(classesIn(t, examples)))
	if !slices.Equal(names, []string{"shared", "small", "trainer"}) {
		t.Errorf("there are examples %q", names)
	}
}

// classesIn a text of several YAML documents, by name.
func classesIn(t *testing.T, text string) map[string]v1alpha1.PartitionClass {
	t.Helper()
	classes := map[string]v1alpha1.PartitionClass{}
	for document := range strings.SplitSeq(text, "---\n") {
		var pc v1alpha1.PartitionClass
		if err := yaml.UnmarshalStrict([]byte(document), &pc); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if _, twice := classes[pc.Name]; twice {
			t.Errorf("%s is there twice", pc.Name)
		}
		classes[pc.Name] = pc
	}
	return classes
}

// The chart's examples have every shape, and each takes devices when all of them are in a
// cluster of two machines.
func TestExamplesOfTheChart(t *testing.T) {
	content, err := os.ReadFile("../../deployments/helm/dovetail/examples/partitionclasses.yaml")
	if err != nil {
		t.Fatal(err)
	}
	classes := classesIn(t, string(content))
	kinds, idle := map[machine.Kind]bool{machine.KindMonitor: true}, map[string]*class.Class{}
	for name, pc := range classes {
		c, err := class.Compile(&pc)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		kinds[c.Kind], idle[name] = true, c
	}
	for _, kind := range machine.Kinds {
		if !kinds[kind] {
			t.Errorf("there is none of %s", kind)
		}
	}
	for _, name := range []string{"dgx-h100", "sriov"} {
		m := simulatortest.Describe(t, name)
		wanted, err := class.WantedOn(slices.Collect(maps.Values(classes)), nil, m.GPUs)
		if err != nil {
			t.Fatal(err)
		}
		devices := publish(t, m, wanted)
		maps.DeleteFunc(idle, func(_ string, c *class.Class) bool {
			return slices.ContainsFunc(devices, func(d device) bool { return takes(t, c, d.built) })
		})
	}
	for name := range idle {
		t.Errorf("%s takes no device", name)
	}
}
