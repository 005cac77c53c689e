// Package archtest holds the lines of the architecture: who may import what,
// and that nothing waits by sleeping. golangci-lint's depguard says the same
// about single imports while one types; here they hold through any number of
// packages between. Each rule has its reason beside it, in rules_test.go.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func TestImports(t *testing.T) {
	g, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		t.Run(strings.ReplaceAll(r.name, " ", "-"), func(t *testing.T) {
			for _, chain := range g.broken(r) {
				t.Errorf("%s\n%s, because %s", chain, r.name, r.why)
			}
		})
	}
	t.Run("downwards", func(t *testing.T) {
		for _, w := range g.upward(layers) {
			t.Errorf("%s\nimports go down only: see layers in rules_test.go", w)
		}
	})
}

// TestRulesCanFail breaks rules in a small module, so that a rule that finds
// nothing is known to be one that has nothing to find.
func TestRulesCanFail(t *testing.T) {
	g, err := load("testdata/fixture")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		rule rule
		want []string
	}{
		{"through another package", rule{of: []string{"pkg/machine"}, not: []string{"k8s.io/..."}, through: true},
			[]string{"pkg/machine → pkg/middle → k8s.io/fake/client"}},
		{"not a direct import", rule{of: []string{"pkg/machine"}, not: []string{"k8s.io/..."}}, nil},
		{"direct", rule{of: []string{"pkg/..."}, not: []string{"k8s.io/fake/client"}},
			[]string{"pkg/middle → k8s.io/fake/client"}},
		{"excepted", rule{of: []string{"pkg/..."}, not: []string{"k8s.io/..."}, except: []string{"pkg/middle"}}, nil},
		{"standard library", rule{of: []string{"cmd/...", "pkg/..."}, not: []string{"os/exec"}},
			[]string{"cmd/thing → os/exec"}},
		{"not inside the standard library", rule{of: []string{"pkg/other"}, not: []string{"unsafe"}, through: true}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := g.broken(tt.rule); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}

	got := g.upward([][]string{{"pkg/machine"}, {"pkg/middle"}, {"cmd/..."}})
	want := []string{"pkg/machine → pkg/middle", "pkg/other has no layer: give it one in rules_test.go"}
	if !slices.Equal(got, want) {
		t.Errorf("layers: got %q, want %q", got, want)
	}
}

// sleepMark allows a sleep on its line, in code that is no test, with a reason:
// a simulated call that is slow.
const sleepMark = "//archtest:sleep "

func TestNoSleep(t *testing.T) {
	found, err := sleeps(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Errorf("%s: wait for the event, or use a timer that the context can end", f)
	}
}

func TestNoSleepCanFail(t *testing.T) {
	found, err := sleeps("testdata/sleeps")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a.go:9", "a_test.go:10"}
	if !slices.Equal(found, want) {
		t.Errorf("got %q, want %q", found, want)
	}
}

// sleeps are the calls of time.Sleep below dir: all of them in tests, and those
// without a mark elsewhere.
func sleeps(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || d.Name() == "out" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		marked := map[int]bool{}
		for _, group := range file.Comments {
			for _, c := range group.List {
				if reason, ok := strings.CutPrefix(c.Text, sleepMark); ok && strings.TrimSpace(reason) != "" {
					marked[files.Position(c.Pos()).Line] = !strings.HasSuffix(path, "_test.go")
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
				at := files.Position(s.Pos())
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && !marked[at.Line] {
					name, err := filepath.Rel(dir, path)
					if err != nil {
						name = path
					}
					found = append(found, fmt.Sprintf("%s:%d", filepath.ToSlash(name), at.Line))
				}
			}
			return true
		})
		return nil
	})
	return found, err
}
