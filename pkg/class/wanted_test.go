package class_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func TestSizes(t *testing.T) {
	classes := []v1alpha1.PartitionClass{
		partitionClass(t, "turn", `{shape: {timeSlice: {clients: 4}}}`),
		partitionClass(t, "small", `{shape: {mps: {memory: 10Gi, compute: 25}}}`),
		partitionClass(t, "large", `{shape: {mps: {memory: 40G}}, hardware: {products: ["NVIDIA H200*"]}}`),
		partitionClass(t, "any", `{shape: {mps: {}}}`),
		partitionClass(t, "elsewhere", `{shape: {mps: {memory: 1Gi}}, hardware: {nodeSelector: {matchLabels: {pool: a}}}}`),
	}
	h100, h200 := machine.GPU{ProductName: "NVIDIA H100 80GB HBM3"}, machine.GPU{ProductName: "NVIDIA H200"}
	wanted, err := class.WantedOn(classes, map[string]string{"pool": "b"}, []machine.GPU{h100, h200})
	if err != nil {
		t.Fatal(err)
	}
	small := machine.Size{Name: "small", Kind: machine.KindMPS, Memory: 10 << 30, Compute: 25}
	large := machine.Size{Name: "large", Kind: machine.KindMPS, Memory: 40e9}
	turn := machine.Size{Name: "turn", Kind: machine.KindTimeSlice, Clients: 4}
	for _, test := range []struct {
		gpu  machine.GPU
		want []machine.Size
	}{{h100, []machine.Size{small, turn}}, {h200, []machine.Size{large, small, turn}}} {
		if got := wanted.Sizes(&test.gpu); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v", test.gpu.ProductName, got)
		}
	}
}

// Partitions are all published where no class is for any of them.
func TestPartitions(t *testing.T) {
	m := simulatortest.Describe(t, "dgx-h100")
	gpu := &m.GPUs[0]
	for name, test := range map[string]struct {
		spec string
		want string // profiles
	}{
		"none":             {`{shape: {gpu: {}}}`, "all"},
		"profile":          {`{shape: {mig: {profile: 3g.40gb}}}`, "3g.40gb"},
		"memory":           {`{shape: {mig: {memory: 15Gi}}}`, "1g.20gb"},
		"too much":         {`{shape: {mig: {memory: 100Gi}}}`, ""},
		"no such profile":  {`{shape: {mig: {profile: 1g.18gb}}}`, ""},
		"another GPU":      {`{shape: {mig: {profile: 1g.10gb}}, hardware: {products: ["*A100*"]}}`, "all"},
		"another node":     {`{shape: {mig: {profile: 1g.10gb}}, hardware: {nodeSelector: {matchLabels: {pool: b}}}}`, "all"},
		"this node":        {`{shape: {mig: {profile: 1g.10gb}}, hardware: {nodeSelector: {matchLabels: {pool: a}}}}`, "1g.10gb"},
		"retired":          {`{shape: {mig: {profile: 1g.10gb}}, published: false}`, "all"},
		"too small a GPU":  {`{shape: {mig: {profile: 1g.10gb}}, hardware: {minMemory: 100Gi}}`, "all"},
		"no architecture":  {`{shape: {mig: {profile: 1g.10gb}}, hardware: {architectures: [Ampere]}}`, "all"},
		"the architecture": {`{shape: {mig: {profile: 1g.10gb}}, hardware: {architectures: [Ampere, Hopper]}}`, "1g.10gb"},
	} {
		wanted, err := class.WantedOn([]v1alpha1.PartitionClass{partitionClass(t, "a", test.spec)}, map[string]string{"pool": "a"}, m.GPUs)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range gpu.MIG.Profiles {
			if wanted.Partition(gpu, &gpu.MIG.Profiles[i]) {
				got = append(got, gpu.MIG.Profiles[i].Name)
			}
		}
		if all := len(got) == len(gpu.MIG.Profiles); all != (test.want == "all") || !all && strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// One bad class costs only itself.
func TestInvalidClass(t *testing.T) {
	classes := []v1alpha1.PartitionClass{
		partitionClass(t, "both", `{shape: {mps: {memory: 1Gi}, gpu: {}}}`),
		partitionClass(t, "good", `{shape: {mps: {memory: 1Gi}}}`),
	}
	wanted, err := class.WantedOn(classes, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "PartitionClass both: spec.shape") || strings.Contains(err.Error(), "good") {
		t.Errorf("error %v", err)
	}
	if sizes := wanted.Sizes(&machine.GPU{}); len(sizes) != 1 || sizes[0].Name != "good" {
		t.Errorf("%+v", sizes)
	}
}

func TestConditions(t *testing.T) {
	pool := func(name, value string) v1alpha1.PartitionClass {
		return partitionClass(t, name, `{shape: {gpu: {}}, hardware: {nodeSelector: {matchExpressions: [{key: pool, operator: NotIn, values: [`+value+`]}]}}}`)
	}
	gpu := &machine.GPU{Memory: machine.Memory{Total: 80 << 30}}
	conditions := func(classes ...v1alpha1.PartitionClass) (string, []*class.Unoffered) {
		wanted, err := class.WantedOn(classes, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if of, err := wanted.Conditions(gpu, machine.KindMPS); of != "" || err != nil {
			t.Errorf("shares: %q, %v", of, err)
		}
		return wanted.Conditions(gpu, machine.KindGPU)
	}
	if got, err := conditions(partitionClass(t, "plain", `{shape: {gpu: {}}, hardware: {minMemory: 1Gi}}`)); got != "" || err != nil {
		t.Errorf("nothing to tell: %q, %v", got, err)
	}
	one, err := conditions(pool("a", "x"))
	if err != nil || len(one) != 8 || one[0] != ',' || one[7] != ',' {
		t.Errorf("one: %q, %v", one, err)
	}
	if both, err := conditions(pool("a", "x"), pool("b", "x")); both != one || err != nil {
		t.Errorf("two that ask the same: %q, %v", both, err)
	}
	if other, err := conditions(pool("a", "y")); other == one || err != nil {
		t.Errorf("another: %q, %v", other, err)
	}
	var many []v1alpha1.PartitionClass
	for i := 10; i > 0; i-- {
		many = append(many, pool(fmt.Sprintf("c%02d", i), fmt.Sprint("v", i)))
	}
	most, err := conditions(many[1:]...)
	if err != nil || len(most) != 64 {
		t.Errorf("as many as there is room for: %q, %v", most, err)
	}
	if more, err := conditions(many...); more != most || len(err) != 1 || err[0].Class != "c10" || !strings.Contains(err[0].Error(), "PartitionClass c10: there are more than 9") {
		t.Errorf("one more: %q, %v", more, err)
	}
}
