package config

import (
	"fmt"
	"slices"
	"strings"
)

// optionalAPIs are the API versions that serve the features behind gates.
var optionalAPIs = []string{
	"resource.k8s.io/v1alpha3", "resource.k8s.io/v1beta1", "resource.k8s.io/v1beta2",
	"scheduling.k8s.io/v1alpha3", "scheduling.k8s.io/v1beta1",
}

// RuntimeConfig is the API server's --runtime-config that goes with gates: the
// defaults where no gate is named, else all versions that a gate may need.
func RuntimeConfig(gates string) string {
	if gates == "" {
		return ""
	}
	var out []string
	for _, a := range optionalAPIs {
		out = append(out, a+"=true")
	}
	return strings.Join(out, ",")
}

// Gate is one feature gate.
type Gate struct {
	Name string
	On   bool
}

// ParseGates reads A=true,B=false.
func ParseGates(s string) ([]Gate, error) {
	var out []Gate
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		name, value, _ := strings.Cut(part, "=")
		if name == "" || (value != "true" && value != "false") {
			return nil, fmt.Errorf("feature gate %q: write NAME=true or NAME=false", part)
		}
		if slices.ContainsFunc(out, func(g Gate) bool { return g.Name == name }) {
			return nil, fmt.Errorf("feature gate %s is given twice", name)
		}
		out = append(out, Gate{name, value == "true"})
	}
	return out, nil
}
