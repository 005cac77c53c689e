// Package machines holds descriptions of machines to simulate, under the names
// of their files.
package machines

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Names are those of all machines, in alphabetical order.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // embedded at build time
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = strings.TrimSuffix(entry.Name(), ".yaml")
	}
	return names
}

// WithGPUs are those that have any, which are all but one.
func WithGPUs() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return name == "nic-only" })
}

// Description returns a machine's YAML.
func Description(name string) ([]byte, error) {
	data, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("no machine is called %q: use one of %s", name, strings.Join(Names(), ", "))
	}
	return data, nil
}
