// Package apitest has what is tried with the API by those who refuse bad objects: the
// validation, the schema.
package apitest

import (
	_ "embed"
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

//go:embed partitionclasses.yaml
var partitionClasses []byte

// Case is one PartitionClass.
type Case struct {
	Name string `json:"name"`
	// Class is the object, without its kind.
	Class json.RawMessage `json:"class"`
	// Refused are parts of what Validate says of it; none means that it is valid.
	Refused []string `json:"refused"`
	// Schema are parts of what the API server says by the schema alone; left out, it is
	// as Refused, and an empty list means that it takes the object.
	Schema *[]string `json:"schema"`
}

// PartitionClasses are good and bad ones.
func PartitionClasses(t testing.TB) []Case {
	t.Helper()
	var cases []Case
	if err := yaml.UnmarshalStrict(partitionClasses, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// Check that err says all that is wanted, and is nil where nothing is.
func Check(t testing.TB, err error, want []string) {
	t.Helper()
	if (err != nil) != (len(want) > 0) {
		t.Fatalf("error %v", err)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
}
