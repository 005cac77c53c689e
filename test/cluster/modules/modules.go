// Package modules holds the pinned Go modules that the cluster's programs are
// built from.
//
// The files are named NAME.mod and NAME.sum rather than NAME/go.mod, because a
// directory with a go.mod is a module of its own, and Go embeds nothing from
// another module. See README.md in this directory for how to refresh them.
package modules

import (
	"embed"
	"fmt"
	"regexp"
)

//go:embed *.mod *.sum
var files embed.FS

// Names lists the modules, in the order in which they are built.
var Names = []string{"etcd", "k8s", "containerd", "runc", "cni"}

// Module is one pinned module: the text of its go.mod and go.sum.
type Module struct {
	Mod, Sum []byte
}

// Get returns the pinned module of that name.
func Get(name string) (Module, error) {
	mod, err := files.ReadFile(name + ".mod")
	if err != nil {
		return Module{}, fmt.Errorf("no pinned module %q: %w", name, err)
	}
	sum, err := files.ReadFile(name + ".sum")
	if err != nil {
		return Module{}, fmt.Errorf("pinned module %q has no checksums: %w", name, err)
	}
	return Module{Mod: mod, Sum: sum}, nil
}

// Version returns the version that the named module requires of a dependency.
func Version(name, dependency string) (string, error) {
	m, err := Get(name)
	if err != nil {
		return "", err
	}
	re := regexp.MustCompile(`(?m)^(?:require)?\s*` + regexp.QuoteMeta(dependency) + `\s+(v\S+)`)
	found := re.FindSubmatch(m.Mod)
	if found == nil {
		return "", fmt.Errorf("pinned module %q does not require %s", name, dependency)
	}
	return string(found[1]), nil
}
