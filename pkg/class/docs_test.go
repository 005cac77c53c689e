package class_test

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/class"
)

// What the documentation shows can be used as it stands.
func TestExamples(t *testing.T) {
	content, err := os.ReadFile("../../docs/partition-classes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, examples, _ := strings.Cut(string(content), "```yaml\n")
	examples, _, _ = strings.Cut(examples, "```")
	names := ""
	for document := range strings.SplitSeq(examples, "---\n") {
		var pc v1alpha1.PartitionClass
		if err := yaml.UnmarshalStrict([]byte(document), &pc); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if _, err := class.Compile(&pc); err != nil {
			t.Errorf("%s: %v", pc.Name, err)
		}
		names += pc.Name + " "
	}
	if names != "small shared trainer " {
		t.Errorf("there are examples %q", names)
	}
}
