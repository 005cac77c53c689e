package v1alpha1

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The API server is asked about the same classes in pkg/controller.
func TestValidatePartitionClass(t *testing.T) {
	content, err := os.ReadFile("testdata/partitionclasses.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tests []struct {
		Name    string          `json:"name"`
		Class   json.RawMessage `json:"class"`
		Refused []string        `json:"refused"`
		Schema  []string        `json:"schema"`
	}
	if err := yaml.UnmarshalStrict(content, &tests); err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.Name, func(t *testing.T) {
			var class PartitionClass
			if err := yaml.UnmarshalStrict(test.Class, &class); err != nil {
				t.Fatal(err)
			}
			err := class.Validate().ToAggregate()
			if (err != nil) != (test.Refused != nil) {
				t.Fatalf("error %v", err)
			}
			for _, part := range test.Refused {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in %q", part, err)
				}
			}
		})
	}
}

func TestResourceName(t *testing.T) {
	for name, ok := range map[string]bool{
		"":                                       true,
		"example.com/gpu":                        true,
		"a/b":                                    true,
		"example.com/" + strings.Repeat("a", 63): true,
		"example.com/" + strings.Repeat("a", 64): false,
		"example.com/":                           false,
		"/gpu":                                   false,
		"example..com/gpu":                       false,
		"-example.com/gpu":                       false,
		"example.com/gpu/small":                  false,
		"example.com/-gpu":                       false,
		"notkubernetes.io/gpu":                   true,
		"kubernetes.io.example.com/gpu":          true,
	} {
		class := PartitionClass{Spec: PartitionClassSpec{Shape: Shape{GPU: &GPUShape{}}, ExtendedResourceName: name}}
		class.Name = "small"
		if errs := class.Validate(); (len(errs) == 0) != ok {
			t.Errorf("%q: %v", name, errs)
		}
	}
}
