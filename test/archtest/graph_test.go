package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// graph is who imports whom, without test files.
type graph struct {
	module  string
	own     []string            // this module's packages, sorted
	imports map[string][]string // of every package there is
}

// load asks the go command about the module in dir.
func load(dir string) (graph, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Module,Standard,ImportMap", "./...")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return graph{}, fmt.Errorf("go list -deps ./... in %s: %w\n%s", dir, err, stderr.String())
	}
	g := graph{imports: map[string][]string{}}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
			ImportMap  map[string]string
			Standard   bool
			Module     *struct {
				Path string
				Main bool
			}
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return graph{}, err
		}
		if !p.Standard { // what the standard library is made of is its own affair
			for i, at := range p.Imports {
				if to, ok := p.ImportMap[at]; ok {
					p.Imports[i] = to
				}
			}
			g.imports[p.ImportPath] = p.Imports
		}
		if p.Module != nil && p.Module.Main {
			g.module = p.Module.Path
			g.own = append(g.own, p.ImportPath)
		}
	}
	slices.Sort(g.own)
	return g, nil
}

// name is a package's as the rules write it.
func (g graph) name(path string) string { return strings.TrimPrefix(path, g.module+"/") }

// forTests are the project's packages that no user gets: tests, tools, and what
// tests share.
var forTests = []string{"hack/...", "test/...", "*test"}

// matches says whether a package is one of the patterns'.
func matches(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if tree, ok := strings.CutSuffix(p, "/..."); ok {
			return name == tree || strings.HasPrefix(name, tree+"/")
		}
		if end, ok := strings.CutPrefix(p, "*"); ok {
			return strings.HasSuffix(name, end)
		}
		return name == p
	})
}

// broken are the ways in which r does not hold, each as a chain of imports.
func (g graph) broken(r rule) []string {
	var chains []string
	for _, path := range g.own {
		name := g.name(path)
		if !matches(name, r.of) || matches(name, r.except) || matches(name, forTests) {
			continue
		}
		if chain := g.reach(path, r.not, r.through); chain != nil {
			chains = append(chains, strings.Join(chain, " → "))
		}
	}
	return chains
}

// reach is the shortest chain of imports from a package to one that matches.
func (g graph) reach(from string, patterns []string, through bool) []string {
	type hop struct {
		path  string
		chain []string
	}
	seen := map[string]bool{from: true}
	for queue := []hop{{from, []string{g.name(from)}}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, next := range g.imports[at.path] {
			chain := append(slices.Clone(at.chain), g.name(next))
			if matches(g.name(next), patterns) {
				return chain
			}
			if through && !seen[next] {
				seen[next] = true
				queue = append(queue, hop{next, chain})
			}
		}
	}
	return nil
}

// upward are the imports that go up or sideways in the layers, and the packages
// that have no layer.
func (g graph) upward(layers [][]string) []string {
	level := func(name string) int {
		return slices.IndexFunc(layers, func(patterns []string) bool { return matches(name, patterns) })
	}
	var wrong []string
	for _, path := range g.own {
		name := g.name(path)
		if matches(name, forTests) {
			continue
		}
		mine := level(name)
		if mine < 0 {
			wrong = append(wrong, name+" has no layer: give it one in rules_test.go")
			continue
		}
		for _, next := range g.imports[path] {
			other := g.name(next)
			theirs := level(other)
			if slices.Contains(g.own, next) && (theirs > mine || theirs == mine && family(name) != family(other)) {
				wrong = append(wrong, name+" → "+other)
			}
		}
	}
	return wrong
}

// family is the tree that a package is of: pkg/simulator of pkg/simulator/model.
func family(name string) string {
	parts := strings.SplitN(name, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}
