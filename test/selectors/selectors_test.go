// Package selectors runs every CEL selector that users are given (the chart's, the
// demo's, the documentation's) against the devices of every machine description. A
// selector that ends in an error stops the scheduling of its Pod, whatever other
// devices there are, so none may.
package selectors

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

const root = "../.."

// selector is one expression and where it stands.
type selector struct {
	where, expression string
	// class is the DeviceClass that has it, or whose devices the request is for.
	class   string
	program cel.CompilationResult
}

func TestSelectors(t *testing.T) {
	classes := compile(t, collect(t, true))
	requests := compile(t, collect(t, false))
	if len(classes) == 0 || len(requests) == 0 {
		t.Fatalf("found %d selectors of classes and %d of requests: the search is broken", len(classes), len(requests))
	}
	matched := map[string]bool{}
	for _, name := range machines.Names() {
		t.Run(name, func(t *testing.T) {
			for _, device := range devices(t, name) {
				passed := passing(t, classes, device)
				if len(passed) != 1 {
					t.Errorf("%d classes are for device %s, want one", len(passed), device.name)
				}
				// The scheduler asks a request only of what its class has passed.
				for _, s := range requests {
					if (s.class == "" || passed[s.class]) && s.matches(t, device) {
						matched[s.where] = true
					}
				}
			}
		})
	}
	// A class is asked of other drivers' devices, too.
	for _, s := range classes {
		if s.matches(t, device{name: "another driver's", Device: cel.Device{Driver: "gpu.example.com"}}) {
			t.Errorf("%s: takes devices of other drivers", s.where)
		}
	}
	for _, s := range requests {
		if !matched[s.where] {
			t.Errorf("%s: %s\nis true of no device of any machine", s.where, s.expression)
		}
	}
}

type device struct {
	name string
	cel.Device
}

// sizes of shares that the chart's tests have classes for.
var sizes = []machine.Size{
	{Name: "small", Kind: machine.KindMPS, Memory: 10 << 30, Compute: 25},
	{Name: "any-compute", Kind: machine.KindMPS, Memory: 512 << 20},
	{Name: "turn", Kind: machine.KindTimeSlice, Memory: 2 << 30},
}

// devices are what a machine publishes.
func devices(t *testing.T, name string) []device {
	t.Helper()
	var found []device
	m := simulatortest.Describe(t, name)
	m.Sharing.Sizes = sizes
	for _, slice := range catalog.Build(m, catalog.Options{}).Slices() {
		for _, d := range slice.Devices {
			found = append(found, device{d.Name, cel.Device{Driver: catalog.DriverName, Attributes: d.Attributes, Capacity: d.Capacity}})
		}
	}
	if len(found) == 0 {
		t.Fatal("no devices")
	}
	return found
}

// passing are the names of the classes that take the device. The same class stands in
// several places: the chart's, and what it renders.
func passing(t *testing.T, classes []selector, d device) map[string]bool {
	t.Helper()
	passed := map[string]bool{}
	for _, s := range classes {
		if s.matches(t, d) {
			passed[s.class] = true
		}
	}
	return passed
}

func (s selector) matches(t *testing.T, d device) bool {
	t.Helper()
	ok, _, err := s.program.DeviceMatches(t.Context(), d.Device)
	if err != nil {
		t.Errorf("%s: %s\non device %s: %v", s.where, s.expression, d.name, err)
	}
	return ok
}

func compile(t *testing.T, selectors []selector) []selector {
	t.Helper()
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true})
	for i, s := range selectors {
		if selectors[i].program = compiler.CompileCELExpression(s.expression, cel.Options{}); selectors[i].program.Error != nil {
			t.Fatalf("%s: %s\n%v", s.where, s.expression, selectors[i].program.Error)
		}
	}
	return selectors
}

// collect finds the selectors of DeviceClasses, or all others, in what users get.
func collect(t *testing.T, classes bool) []selector {
	t.Helper()
	var found []selector
	for _, pattern := range []string{"test/chart/testdata/*.yaml", "demo/scenarios/*.yaml", "README.md", "deployments/helm/dovetail/*.md", "docs"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" && filepath.Ext(path) != ".md" {
					return err
				}
				content, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				more, err := inFile(path, string(content), classes)
				found = append(found, more...)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return found
}

func inFile(path, content string, classes bool) ([]selector, error) {
	where, _ := filepath.Rel(root, path)
	var found []selector
	for _, document := range documents(path, content) {
		if !strings.Contains(document, "expression:") {
			continue
		}
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return nil, fmt.Errorf("%s: %w in\n%s", where, err, document)
		}
		kind := object["kind"]
		if kind == "ValidatingAdmissionPolicy" || (kind == "DeviceClass") != classes {
			continue
		}
		class := ""
		if kind == "DeviceClass" {
			class, _, _ = unstructured.NestedString(object, "metadata", "name")
		}
		for _, s := range selectorsIn(object, class) {
			s.where = fmt.Sprintf("%s (%d)", where, len(found)+1)
			found = append(found, s)
		}
	}
	return found, nil
}

// documents are a file's YAML documents; of Markdown, those in its code blocks.
func documents(path, content string) []string {
	if filepath.Ext(path) != ".md" {
		return strings.Split(content, "\n---")
	}
	var found []string
	for i, block := range strings.Split(content, "```") {
		if i%2 == 1 && strings.HasPrefix(block, "yaml\n") {
			found = append(found, strings.Split(strings.TrimPrefix(block, "yaml\n"), "\n---")...)
		}
	}
	return found
}

// selectorsIn an object, at any depth, with the class that is named nearest.
func selectorsIn(value any, class string) []selector {
	var found []selector
	switch v := value.(type) {
	case map[string]any:
		if named, ok := v["deviceClassName"].(string); ok {
			class = named
		}
		if selects, ok := v["cel"].(map[string]any); ok {
			if expression, ok := selects["expression"].(string); ok {
				return []selector{{expression: expression, class: class}}
			}
		}
		for _, child := range v {
			found = append(found, selectorsIn(child, class)...)
		}
	case []any:
		for _, child := range v {
			found = append(found, selectorsIn(child, class)...)
		}
	}
	return found
}
