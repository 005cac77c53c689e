// Package selector reads CEL selectors of devices: it runs them, as the scheduler
// does, and says what they tell about every device that they take. Reading is by the
// shape of the expression, and on the safe side: what it says is so.
package selector

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/cel-go/common/ast"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/lru"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// features as they are by default in the Kubernetes that the chart asks for.
var features = cel.Features{EnableConsumableCapacity: true}

// compiled keeps what is compiled: a template's selectors come again with each of its
// claims, and compiling takes a millisecond. A program can take 100 kB, and anybody who
// writes claims can have some compiled.
var compiled = lru.New(200)

// A Selector is one compiled expression.
type Selector struct {
	program cel.CompilationResult
	facts   facts
}

// Compile reads an expression. The error is the compiler's, and of several lines.
func Compile(expression string) (*Selector, error) {
	if known, ok := compiled.Get(expression); ok {
		return known.(*Selector), nil
	}
	program := cel.GetCompiler(features).CompileCELExpression(expression, cel.Options{DisableCostEstimation: true})
	if program.Error != nil {
		return nil, program.Error
	}
	tree, issues := program.Environment.Parse(expression)
	if issues.Err() != nil {
		return nil, fmt.Errorf("parse: %w", issues.Err())
	}
	s := &Selector{program: program, facts: read(tree.NativeRep().Expr())}
	compiled.Add(expression, s)
	return s, nil
}

// A List of selectors, all of which a device must pass.
type List []*Selector

// CompileAll compiles a class's or request's selectors. An error names the first
// that does not compile.
func CompileAll(selectors []resourceapi.DeviceSelector) (List, error) {
	var list List
	for i, s := range selectors {
		if s.CEL == nil {
			return nil, fmt.Errorf("selectors[%d]: is not CEL", i)
		}
		one, err := Compile(s.CEL.Expression)
		if err != nil {
			return nil, fmt.Errorf("selectors[%d]: %w", i, err)
		}
		list = append(list, one)
	}
	return list, nil
}

// Takes says whether a device passes all of them. An error is one that stops the
// scheduler, too.
func (l List) Takes(ctx context.Context, device cel.Device) (bool, error) {
	for _, s := range l {
		ok, _, err := s.program.DeviceMatches(ctx, device)
		if err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// Ours says whether only devices of this driver can pass: one of the selectors asks
// for the driver, or for a type of its devices.
func (l List) Ours() bool {
	for _, s := range l {
		if s.facts.driver == catalog.DriverName || s.facts.equal["type"] != "" {
			return true
		}
	}
	return false
}

// Others says whether only devices of another driver can pass.
func (l List) Others() bool {
	for _, s := range l {
		if s.facts.driver != "" && s.facts.driver != catalog.DriverName {
			return true
		}
	}
	return false
}

// Kind that every device has that passes; empty where the selectors leave it open.
func (l List) Kind() machine.Kind { return machine.Kind(l.Equal("type")) }

// Equal is the value that this driver's attribute has on every device that passes;
// empty where the selectors leave it open.
func (l List) Equal(attribute string) string {
	for _, s := range l {
		if value := s.facts.equal[attribute]; value != "" {
			return value
		}
	}
	return ""
}

// Memory is the least that every device has that passes; nil where the selectors leave
// it open.
func (l List) Memory() *resource.Quantity {
	var least *resource.Quantity
	for _, s := range l {
		if m := s.facts.memory; m != nil && (least == nil || least.Cmp(*m) < 0) {
			least = m
		}
	}
	return least
}

// Reads names the attributes on which the selectors depend, by name alone where they
// are this driver's, in order. False where that cannot be told.
func (l List) Reads() ([]string, bool) {
	names := map[string]bool{}
	for _, s := range l {
		if s.facts.opaque {
			return nil, false
		}
		maps.Copy(names, s.facts.reads)
	}
	return slices.Sorted(maps.Keys(names)), true
}

// facts hold for every device that passes.
type facts struct {
	driver string
	equal  map[string]string // strings of this driver's attributes
	memory *resource.Quantity
	reads  map[string]bool
	opaque bool // reads does not have everything
}

func read(expression ast.Expr) facts {
	f := facts{equal: map[string]string{}, reads: map[string]bool{}}
	for _, term := range terms(expression) {
		f.learn(term)
	}
	f.look(expression)
	return f
}
