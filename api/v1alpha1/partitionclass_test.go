package v1alpha1

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1/apitest"
)

// The API server is asked about the same classes in pkg/controller.
func TestValidatePartitionClass(t *testing.T) {
	for _, test := range apitest.PartitionClasses(t) {
		t.Run(test.Name, func(t *testing.T) {
			var class PartitionClass
			if err := yaml.UnmarshalStrict(test.Class, &class); err != nil {
				t.Fatal(err)
			}
			apitest.Check(t, class.Validate().ToAggregate(), test.Refused)
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
		"notkubernetes.io/gpu":                   false,
		strings.Repeat("a", 244) + "/gpu":        true,
		strings.Repeat("a", 245) + "/gpu":        false,
		"kubernetes.io.example.com/gpu":          true,
	} {
		class := PartitionClass{Spec: PartitionClassSpec{Shape: Shape{GPU: &GPUShape{}}, ExtendedResourceName: name}}
		class.Name = "small"
		if errs := class.Validate(); (len(errs) == 0) != ok {
			t.Errorf("%q: %v", name, errs)
		}
	}
}
