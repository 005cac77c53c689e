package v1alpha1

import (
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
		"unknown kind":     {`{"apiVersion":"dovetail.dev/v1alpha1","kind":"GpuConfig"}`, []string{"kind", `"GpuConfig"`, "want GPUConfig in dovetail.dev/v1alpha1"}},
		"unknown group":    {`{"apiVersion":"gpu.example.com/v1","kind":"GPUConfig"}`, []string{"kind", "gpu.example.com/v1", "want GPUConfig"}},
		"no kind":          {`{}`, []string{"kind", "none", "want GPUConfig"}},
		"nothing":          {``, []string{"no parameters", "want"}},
		"unknown field":    {head + `,"computMode":"Default"}`, []string{`unknown field "computMode"`, "docs/configuration.md"}},
		"twice":            {head + `,"computeMode":"Default","computeMode":"Default"}`, []string{`duplicate field "computeMode"`}},
		"wrong case":       {head + `,"ComputeMode":"Default"}`, []string{`unknown field "ComputeMode"`}},
		"out of range":     {head + `,"computeMode":"Prohibited"}`, []string{"computeMode", `"Prohibited"`, "Default", "ExclusiveProcess"}},
		"wrong type":       {head + `,"computeMode":7}`, []string{"computeMode", "a number is not what belongs here"}},
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

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig","computeMode":"Default"}`))
	f.Fuzz(func(t *testing.T, parameters []byte) {
		config, err := Decode(parameters)
		if err == nil && len(config.Validate()) > 0 {
			t.Errorf("accepted what does not validate: %+v", config)
		}
	})
}
