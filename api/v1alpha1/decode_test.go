package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	const head = `{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig"`
	for name, test := range map[string]struct {
		parameters string
		wantErr    []string // parts of the message; none means no error
	}{
		"empty config":     {head + `}`, nil},
		"exclusive":        {head + `,"computeMode":"ExclusiveProcess"}`, nil},
		"unknown kind":     {`{"apiVersion":"dovetail.dev/v1alpha1","kind":"GpuConfig"}`, []string{"kind", `"GpuConfig"`, "want GPUConfig, NICConfig or PairConfig in dovetail.dev/v1alpha1"}},
		"unknown group":    {`{"apiVersion":"gpu.example.com/v1","kind":"GPUConfig"}`, []string{"kind", "gpu.example.com/v1", "want GPUConfig"}},
		"no kind":          {`{}`, []string{"kind", "none", "want GPUConfig"}},
		"nothing":          {``, []string{"no parameters", "want"}},
		"unknown field":    {head + `,"computMode":"Default"}`, []string{`unknown field "computMode"`, "docs/configuration.md"}},
		"twice":            {head + `,"computeMode":"Default","computeMode":"Default"}`, []string{`duplicate field "computeMode"`}},
		"wrong case":       {head + `,"ComputeMode":"Default"}`, []string{`unknown field "ComputeMode"`}},
		"out of range":     {head + `,"computeMode":"Prohibited"}`, []string{"computeMode", `"Prohibited"`, "Default", "ExclusiveProcess"}},
		"wrong type":       {head + `,"computeMode":7}`, []string{"computeMode", "a number is not what belongs here"}},
		"a share":          {head + `,"sharing":{"strategy":"MPS","mps":{"activeThreadPercentage":25,"memoryLimit":"10Gi","priority":"BelowNormal"}},"enforcement":"Strict","locked":["sharing"]}`, nil},
		"no settings":      {head + `,"sharing":{"mps":{},"timeSlicing":{}}}`, nil},
		"a time slice":     {head + `,"sharing":{"timeSlicing":{"interval":"Short"}}}`, nil},
		"no strategy":      {head + `,"sharing":{"strategy":"Fair"}}`, []string{"sharing.strategy", `"Fair"`, "MPS", "TimeSlicing"}},
		"no interval":      {head + `,"sharing":{"timeSlicing":{"interval":"Tiny"}}}`, []string{"sharing.timeSlicing.interval", `"Tiny"`, "Short"}},
		"other's field":    {head + `,"sharing":{"strategy":"TimeSlicing","mps":{}}}`, []string{"sharing.mps", "TimeSlicing", "set strategy to MPS"}},
		"too much":         {head + `,"sharing":{"mps":{"activeThreadPercentage":101}}}`, []string{"sharing.mps.activeThreadPercentage", "101", "nearest is 100"}},
		"too little":       {head + `,"sharing":{"mps":{"activeThreadPercentage":0}}}`, []string{"sharing.mps.activeThreadPercentage", "nearest is 1"}},
		"no memory":        {head + `,"sharing":{"mps":{"memoryLimit":"0"}}}`, []string{"sharing.mps.memoryLimit", `"0"`, "1Mi"}},
		"not enforced":     {head + `,"enforcement":"Maybe"}`, []string{"enforcement", `"Maybe"`, "BestEffort"}},
		"not to be locked": {head + `,"locked":["kind"]}`, []string{"locked[0]", `"kind"`, "sharing"}},
		"MPS has its own":  {head + `,"computeMode":"Default","sharing":{"strategy":"MPS"}}`, []string{"computeMode", "MPS sets"}},
		"turns of one":     {head + `,"computeMode":"ExclusiveProcess","sharing":{"strategy":"TimeSlicing"}}`, []string{"computeMode", `"ExclusiveProcess"`, "use Default"}},
		"no object":        {`[]`, []string{"docs/configuration.md"}},
		"not even JSON":    {`computeMode`, []string{""}},
		"garbage after it": {head + `} x`, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(test.parameters))
			if (err != nil) != (test.wantErr != nil) {
				t.Fatalf("error %v", err)
			}
			for _, part := range test.wantErr {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in %q", part, err)
				}
			}
		})
	}
}

// FuzzDecode: what is accepted validates, and is the same when it is written and read
// again, or merged into nothing.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig","computeMode":"Default"}`))
	f.Add([]byte(`{"apiVersion":"dovetail.dev/v1alpha1","kind":"NICConfig","mtu":9000,"addresses":["10.0.0.1/24"],"routes":[{"to":"0.0.0.0/0","via":"10.0.0.254","metric":7}]}`))
	f.Add([]byte(`{"apiVersion":"dovetail.dev/v1alpha1","kind":"PairConfig","gpu":{"enforcement":"None"},"nic":{"dscp":26},"locked":["nic.dscp"]}`))
	f.Fuzz(func(t *testing.T, parameters []byte) {
		config, err := Decode(parameters)
		if err != nil {
			return
		}
		if errs := config.Validate(); len(errs) > 0 {
			t.Fatalf("accepted what does not validate: %v", errs)
		}
		merged := config.DeepCopyObject().(Config)
		for _, same := range []Config{merged, New(config.Kind())} {
			if same != merged {
				same.GetObjectKind().SetGroupVersionKind(config.GetObjectKind().GroupVersionKind())
				if err := Merge(same, config); err != nil {
					t.Fatal(err)
				}
			}
			want, wantErr := json.Marshal(config)
			got, err := json.Marshal(same)
			if err != nil || wantErr != nil || string(got) != string(want) {
				t.Errorf("%s, %v, is not %s, %v", got, err, want, wantErr)
			}
			if _, err := Decode(got); err != nil {
				t.Errorf("not read again: %v", err)
			}
		}
	})
}
