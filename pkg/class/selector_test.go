package class_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// specs of every shape and every selection.
var specs = map[string]string{
	"profile":       `{shape: {mig: {profile: 1g.10gb}}}`,
	"media":         `{shape: {mig: {profile: 1g.10gb+me}}, hardware: {products: ["NVIDIA H100*", "*A100*"]}}`,
	"memory":        `{shape: {mig: {memory: 10G}}, hardware: {architectures: [Hopper, Ampere]}}`,
	"memory-nodes":  `{shape: {mig: {memory: 20G}}, hardware: {minMemory: 90Gi, nodeSelector: {matchLabels: {pool: a}}}}`,
	"minimum":       `{shape: {mig: {profile: 1g.10gb}}, hardware: {minMemory: 79Gi}}`,
	"any-share":     `{shape: {mps: {}}}`,
	"share":         `{shape: {mps: {memory: 10Gi, compute: 25, enforcement: Strict}}, hardware: {minMemory: 30Gi}}`,
	"any-turn":      `{shape: {timeSlice: {interval: Short}}, hardware: {nodeSelector: {matchLabels: {pool: a}}}}`,
	"turn":          `{shape: {timeSlice: {clients: 4}}, hardware: {nodeSelector: {matchExpressions: [{key: pool, operator: In, values: [a, b]}]}}}`,
	"turn-memory":   `{shape: {timeSlice: {memory: 1Gi}}, hardware: {nodeSelector: {matchLabels: {pool: b}}}}`,
	"whole":         `{shape: {gpu: {}}, hardware: {products: ["Tesla T4", "NVIDIA L40?"], minMemory: 14Gi}}`,
	"whole-nodes":   `{shape: {gpu: {}}, hardware: {nodeSelector: {matchExpressions: [{key: pool, operator: NotIn, values: [a]}]}}}`,
	"quotes":        `{shape: {gpu: {}}, hardware: {products: ["\"quoted\\ (name) [ü]*", "NVIDIA GB200"]}}`,
	"pair":          `{shape: {pair: {closeness: PXB, lossless: true}}, hardware: {products: ["*H100*"], minMemory: 70Gi}}`,
	"nic":           `{shape: {nic: {lossless: true}}, hardware: {products: ["ConnectX-7*"]}}`,
	"nic-nodes":     `{shape: {nic: {}}, hardware: {nodeSelector: {matchLabels: {pool: a}}}}`,
	"rdma":          `{shape: {rdma: {}}}`,
	"vf":            `{shape: {vf: {}}}`,
	"retired":       `{shape: {gpu: {}}, published: false}`,
	"retired-share": `{shape: {mps: {memory: 1Gi}}, published: false}`,
}

// Whatever classes there are, what their selectors take of a machine's devices is what
// the classes are for, and the nodes publish all of that.
func TestSelectorsAndWhatIsPublished(t *testing.T) {
	var classes []v1alpha1.PartitionClass
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		classes = append(classes, partitionClass(t, name, specs[name]))
	}
	taken := map[string]bool{}
	for _, name := range machines.WithGPUs() {
		t.Run(name, func(t *testing.T) {
			m := simulatortest.Describe(t, name)
			for _, labels := range []map[string]string{{"pool": "a"}, {"pool": "b"}, nil} {
				wanted, err := class.WantedOn(classes, labels, m.GPUs)
				if err != nil {
					t.Fatal(err)
				}
				devices := publish(t, m, wanted)
				partitions := map[string]bool{}
				for i := range classes {
					compiled, err := class.Compile(&classes[i])
					if err != nil {
						t.Fatal(err)
					}
					for _, d := range devices {
						want := isFor(&classes[i], labels["pool"], d.Device)
						if got := takes(t, compiled, d.built); got != want {
							t.Errorf("pool %q: class %s takes %s: %t", labels["pool"], compiled.Name, d.Name, got)
						}
						if want {
							taken[compiled.Name] = true
							partitions[d.Name] = true
						}
						if got, trimmed := takes(t, compiled, trim(d.built)), takes(t, compiled, d.built); got != trimmed {
							t.Errorf("class %s of %s by the attributes that selectors read: %t", compiled.Name, d.Name, got)
						}
					}
				}
				for _, d := range devices {
					if d.Partition != nil && len(partitions) > 0 && slices.ContainsFunc(m.GPUs, func(g machine.GPU) bool { return forPartitionsOf(classes, labels["pool"], &g) }) && !partitions[d.Name] {
						t.Errorf("pool %q: %s is published, and no class takes it", labels["pool"], d.Name)
					}
				}
			}
		})
	}
	for name := range specs {
		if strings.HasPrefix(name, "retired") == taken[name] && name != "nic" {
			t.Errorf("class %s takes devices: %t", name, taken[name])
		}
	}
}

// isFor says by hand what the classes above are for.
func isFor(c *v1alpha1.PartitionClass, pool string, d machine.Device) bool {
	if d.GPU == nil {
		if c.Name == "nic-nodes" {
			return d.Kind == machine.KindNIC && pool == "a"
		}
		return c.Name == string(d.Kind) && d.Kind != machine.KindNIC // which "nic" knows by a model that no machine has
	}
	gpu, usable := d.GPU, d.GPU.Memory.Usable()
	smallest := func(memory uint64) bool {
		p, ok := gpu.MIG.Smallest(memory)
		return ok && d.Partition != nil && d.Partition.Profile == p
	}
	profile := ""
	if d.Partition != nil {
		profile = d.Partition.Profile.Name
	}
	switch c.Name {
	case "profile":
		return profile == "1g.10gb"
	case "media":
		return profile == "1g.10gb+me" && (strings.HasPrefix(gpu.ProductName, "NVIDIA H100") || strings.Contains(gpu.ProductName, "A100"))
	case "memory":
		return smallest(10e9) && (gpu.Architecture == "Hopper" || gpu.Architecture == "Ampere")
	case "memory-nodes":
		return smallest(20e9) && usable >= 90<<30 && pool == "a"
	case "minimum":
		return profile == "1g.10gb" && usable >= 79<<30
	case "any-share":
		return d.Kind == machine.KindMPS && d.Size == nil
	case "share":
		return d.Kind == machine.KindMPS && d.Size != nil && d.Size.Name == "share" && usable >= 30<<30
	case "any-turn":
		return d.Kind == machine.KindTimeSlice && d.Size == nil && pool == "a"
	case "turn":
		return d.Kind == machine.KindTimeSlice && d.Size != nil && d.Size.Name == "turn" && pool != ""
	case "turn-memory":
		return d.Kind == machine.KindTimeSlice && d.Size != nil && d.Size.Name == "turn-memory" && pool == "b"
	case "whole":
		return d.Kind == machine.KindGPU && usable >= 14<<30 && (gpu.ProductName == "Tesla T4" || gpu.ProductName == "NVIDIA L40S")
	case "whole-nodes":
		return d.Kind == machine.KindGPU && pool != "a"
	case "pair":
		near := []machine.Closeness{machine.ClosenessPIX, machine.ClosenessPXB, machine.ClosenessDeclared}
		return d.Kind == machine.KindPair && slices.Contains(near, d.Closeness) && d.NIC.DCB.Lossless() &&
			strings.Contains(gpu.ProductName, "H100") && usable >= 70<<30
	case "quotes":
		return d.Kind == machine.KindGPU && gpu.ProductName == "NVIDIA GB200"
	}
	return false
}

func forPartitionsOf(classes []v1alpha1.PartitionClass, pool string, g *machine.GPU) bool {
	return slices.ContainsFunc(classes, func(c v1alpha1.PartitionClass) bool {
		return c.Spec.Shape.MIG != nil && slices.ContainsFunc(g.Partitions(), func(p machine.Partition) bool {
			return isFor(&c, pool, machine.Device{Kind: machine.KindMIG, GPU: g, Partition: &p})
		})
	})
}

// trim leaves what selectors may read.
func trim(d resourceapi.Device) resourceapi.Device {
	trimmed := resourceapi.Device{Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}, Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}}
	for _, name := range class.AttributeNames {
		if value, ok := d.Attributes[resourceapi.QualifiedName(name)]; ok {
			trimmed.Attributes[resourceapi.QualifiedName(name)] = value
		}
	}
	trimmed.Capacity[class.CapacityName] = d.Capacity[class.CapacityName]
	return trimmed
}

// One class by memory serves a fleet: of each model it takes one profile, never a larger
// one when all of those are out.
func TestSmallestProfileOfEachModel(t *testing.T) {
	small := compiled(t, "small", `{shape: {mig: {memory: 10G}}}`)
	want := map[string]string{
		"NVIDIA A100-SXM4-40GB": "1g.10gb", "NVIDIA A100-SXM4-80GB": "1g.10gb", "NVIDIA A30": "2g.12gb", "NVIDIA H100 NVL": "1g.12gb",
		"NVIDIA H100 80GB HBM3": "1g.10gb", "NVIDIA H200": "1g.18gb", "NVIDIA B200": "1g.23gb", "NVIDIA GB200": "1g.23gb",
		"NVIDIA RTX PRO 6000 Blackwell Server Edition": "1g.24gb-me",
	}
	found := map[string]string{}
	for _, name := range []string{"mig-fleet", "dgx-h100", "hgx-h200", "hgx-b200", "gb200", "rtx-pro-6000"} {
		for _, d := range publish(t, simulatortest.Describe(t, name), &class.Wanted{}) {
			if takes(t, small, d.built) {
				found[d.GPU.ProductName] += d.Partition.Profile.Name + " "
			}
		}
	}
	for model, profiles := range found {
		if got := slices.Compact(strings.Fields(profiles)); !slices.Equal(got, []string{want[model]}) {
			t.Errorf("of %q it takes %q, want %q", model, got, want[model])
		}
	}
	if len(found) != len(want) {
		t.Errorf("it takes partitions of %d models: %q", len(found), found)
	}
}

// An agent of an earlier version does not publish all that selectors read; other
// drivers publish nothing of it.
func TestForeignDevices(t *testing.T) {
	old := publish(t, simulatortest.Describe(t, "dgx-h100"), &class.Wanted{})
	for name, spec := range specs {
		c := compiled(t, name, spec)
		if evaluate(t, c.DeviceClass(), cel.Device{Driver: "gpu.example.com", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"type": text("gpu")}}) {
			t.Errorf("%s takes devices of another driver", name)
		}
		for _, d := range old {
			attributes := maps.Clone(d.built.Attributes)
			delete(attributes, "nextSmallerMemory")
			delete(attributes, class.AttributeConditions)
			d.built.Attributes = attributes
			if takes(t, c, d.built) && slices.Contains([]string{"memory", "memory-nodes", "any-turn", "whole-nodes"}, name) {
				t.Errorf("%s takes %s, which does not say enough", name, d.Name)
			}
		}
	}
}

// There is no catalog of these yet that it could be tried with.
func TestNICs(t *testing.T) {
	yes, no := resourceapi.DeviceAttribute{BoolValue: ptr.To(true)}, resourceapi.DeviceAttribute{BoolValue: ptr.To(false)}
	type attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	pair := func(closeness string, lossless resourceapi.DeviceAttribute, memory string) resourceapi.Device {
		return resourceapi.Device{
			Attributes: attributes{"type": text("pair"), "productName": text("NVIDIA H100 80GB HBM3"), "closeness": text(closeness), "lossless": lossless},
			Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}},
		}
	}
	nic := func(kind, model string, lossless resourceapi.DeviceAttribute) resourceapi.Device {
		return resourceapi.Device{Attributes: attributes{"type": text(kind), "model": text(model), "lossless": lossless}}
	}
	for _, test := range []struct {
		class  string
		device resourceapi.Device
		want   bool
	}{
		{"pair", pair("PIX", yes, "79Gi"), true},
		{"pair", pair("PXB", yes, "79Gi"), true},
		{"pair", pair("declared", yes, "79Gi"), true},
		{"pair", pair("PHB", yes, "79Gi"), false},
		{"pair", pair("", yes, "79Gi"), false},
		{"pair", pair("PIX", no, "79Gi"), false},
		{"pair", pair("PIX", yes, "69Gi"), false},
		{"nic", nic("nic", "ConnectX-7", yes), true},
		{"nic", nic("nic", "ConnectX-7 Dx", yes), true},
		{"nic", nic("nic", "ConnectX-6", yes), false},
		{"nic", nic("nic", "ConnectX-7", no), false},
		{"nic", nic("rdma", "ConnectX-7", yes), false},
		{"rdma", nic("rdma", "ConnectX-7", no), true},
		{"vf", nic("vf", "ConnectX-7", no), true},
		{"vf", nic("nic", "ConnectX-7", no), false},
	} {
		if got := takes(t, compiled(t, test.class, specs[test.class]), test.device); got != test.want {
			t.Errorf("%s of %v: %t", test.class, test.device.Attributes, got)
		}
	}
}

// The API server has limits for the length of expressions, and for what it thinks that
// they can cost.
func TestLimitsOfSelectors(t *testing.T) {
	products := make([]string, 16)
	for i := range products {
		products[i] = `"` + strings.Repeat("*ü", 21) + `"`
	}
	list := "[" + strings.Join(products, ", ") + "]"
	hardware := `hardware: {products: ` + list + `, architectures: ` + list + `, minMemory: 1Gi, nodeSelector: {matchLabels: {a: b}}}`
	all := maps.Clone(specs)
	all["a"+strings.Repeat("b", 39)] = `{shape: {mps: {}}, ` + hardware + `}`
	all["partition"] = `{shape: {mig: {memory: 10Gi}}, ` + hardware + `}`
	for name, spec := range all {
		expression := compiled(t, name, spec).DeviceClass().Selectors[0].CEL.Expression
		program := compiler.CompileCELExpression(expression, cel.Options{})
		if program.Error != nil || program.MaxCost > resourceapi.CELSelectorExpressionMaxCost || len(expression) > resourceapi.CELSelectorExpressionMaxLength {
			t.Errorf("%s: error %v, %d characters of %d, cost %d of %d:\n%s", name, program.Error,
				len(expression), resourceapi.CELSelectorExpressionMaxLength, program.MaxCost, resourceapi.CELSelectorExpressionMaxCost, expression)
		}
	}
}
