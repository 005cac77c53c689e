package main

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// scenario is one of the files in demo/scenarios.
type scenario struct {
	file     string
	manifest string
}

func read(dir string) ([]scenario, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	var scenarios []scenario
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		scenarios = append(scenarios, scenario{file: filepath.Base(path), manifest: string(content)})
	}
	return scenarios, nil
}

// number is what a file's name begins with.
func number(path string) int {
	digits, _, _ := strings.Cut(filepath.Base(path), "-")
	n, _ := strconv.Atoi(digits) // without a number it comes first
	return n
}

// name is the file's, without its ending.
func (s scenario) name() string { return strings.TrimSuffix(s.file, ".yaml") }

func (s scenario) namespace() string { return "demo-" + s.name() }

// labels of the namespace: admin access needs one.
func (s scenario) labels() map[string]string {
	if strings.Contains(s.manifest, "adminAccess: true") {
		return map[string]string{"resource.kubernetes.io/admin-access": "true"}
	}
	return nil
}

// machineMark begins the line of a file's comment that names the scenario's machine.
const machineMark = "machine: "

// needs is the machine of demo/machines on which the scenario plays.
func (s scenario) needs() string {
	for line := range strings.Lines(s.manifest) {
		if name, ok := strings.CutPrefix(line, "# "+machineMark); ok {
			return strings.TrimSpace(name)
		}
	}
	return machine
}

// objects of the file, each in a namespace of the scenario's own but for classes, and those namespaces.
// The file's own namespaces are for people who apply it by hand.
func (s scenario) objects() (objects []runtime.Object, namespaces []string, err error) {
	if objects, err = harness.Objects(s.manifest); err != nil {
		return nil, nil, err
	}
	objects = slices.DeleteFunc(objects, func(o runtime.Object) bool { _, is := o.(*corev1.Namespace); return is })
	for _, o := range objects {
		object, err := meta.Accessor(o)
		if err != nil {
			return nil, nil, err
		}
		if _, ok := o.(*v1alpha1.PartitionClass); ok {
			continue // it is the cluster's
		}
		namespace := s.namespace()
		if own := object.GetNamespace(); own != "" {
			namespace += "-" + own
		}
		object.SetNamespace(namespace)
		if !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	return objects, namespaces, nil
}
