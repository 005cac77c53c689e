// Command crddoc writes the reference of PartitionClass in the documentation from the
// CustomResourceDefinition, whose descriptions are the comments in api.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/hack/marked"
	"github.com/dovetail-dra/dovetail/hack/toolbox"
)

const (
	definition = "deployments/helm/dovetail/files/dovetail.dev_partitionclasses.yaml"
	page       = "docs/partition-classes.md"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "crddoc:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := toolbox.Root()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(root, definition))
	if err != nil {
		return err
	}
	var crd apiextensions.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &crd); err != nil {
		return fmt.Errorf("%s: %w", definition, err)
	}
	before, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return err
	}
	after, err := marked.Replace(string(before), "reference", reference(crd.Spec.Versions[0].Schema.OpenAPIV3Schema))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(filepath.Join(root, page), []byte(after), 0o644)
}
