package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"
)

func config(t *testing.T, fields string) *GPUConfig {
	t.Helper()
	c, err := Decode([]byte(`{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig"` + fields + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return c.(*GPUConfig)
}

func TestOverride(t *testing.T) {
	for name, test := range map[string]struct {
		class, claim string
		want         string // of the result without its kind
		wantErr      []string
	}{
		"field by field": {
			`,"sharing":{"strategy":"MPS","mps":{"activeThreadPercentage":50,"memoryLimit":"10Gi"}}`,
			`,"sharing":{"mps":{"activeThreadPercentage":25}},"enforcement":"None"`,
			`{"sharing":{"strategy":"MPS","mps":{"activeThreadPercentage":25,"memoryLimit":"10Gi"}},"enforcement":"None"}`, nil,
		},
		"another strategy": {
			`,"sharing":{"strategy":"MPS","mps":{"activeThreadPercentage":50}}`,
			`,"sharing":{"strategy":"TimeSlicing","timeSlicing":{"interval":"Long"}}`,
			`{"sharing":{"strategy":"TimeSlicing","timeSlicing":{"interval":"Long"}}}`, nil,
		},
		"nothing": {``, ``, `{}`, nil},
		"a locked field": {
			`,"enforcement":"Strict","locked":["enforcement","computeMode"]`, `,"enforcement":"None","computeMode":"Default"`,
			``, []string{"enforcement: Forbidden", "computeMode: Forbidden", "the DeviceClass has locked it"},
		},
		"beside a locked field": {
			`,"enforcement":"Strict","locked":["enforcement"]`, `,"computeMode":"Default"`,
			`{"computeMode":"Default","enforcement":"Strict","locked":["enforcement"]}`, nil,
		},
		"a claim that locks": {``, `,"locked":["sharing"]`, ``, []string{"locked", "remove it from the claim"}},
	} {
		t.Run(name, func(t *testing.T) {
			merged := &GPUConfig{}
			if err := Merge(merged, config(t, test.class)); err != nil {
				t.Fatal(err)
			}
			err := Override(merged, config(t, test.claim))
			if (err != nil) != (test.wantErr != nil) {
				t.Fatalf("error %v", err)
			}
			for _, part := range test.wantErr {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in %q", part, err)
				}
			}
			if err != nil {
				return
			}
			if got, err := json.Marshal(merged); err != nil || string(got) != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

// What is merged must not change what it came from.
func TestMergeChangesNothingElse(t *testing.T) {
	class := config(t, `,"sharing":{"mps":{"activeThreadPercentage":50}},"locked":["enforcement"]`)
	before, err := json.Marshal(class)
	if err != nil {
		t.Fatal(err)
	}
	merged := &GPUConfig{}
	for _, over := range []*GPUConfig{class, config(t, `,"sharing":{"mps":{"activeThreadPercentage":25}},"locked":["sharing"]`)} {
		if err := Merge(merged, over); err != nil {
			t.Fatal(err)
		}
	}
	if after, err := json.Marshal(class); err != nil || string(after) != string(before) {
		t.Errorf("now %s, %v, before %s", after, err, before)
	}
}
