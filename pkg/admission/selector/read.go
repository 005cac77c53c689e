package selector

import (
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
)

// Functions as users write them.
const (
	orValue       = "orValue"
	compareTo     = "compareTo"
	isGreaterThan = "isGreaterThan"
	quantity      = "quantity"
)

// terms are what must all be true for the expression to be.
func terms(e ast.Expr) []ast.Expr {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.LogicalAnd {
		var all []ast.Expr
		for _, arg := range e.AsCall().Args() {
			all = append(all, terms(arg)...)
		}
		return all
	}
	return []ast.Expr{e}
}

// learn takes from a term what it says of devices for which it is true.
func (f *facts) learn(term ast.Expr) {
	if term.Kind() != ast.CallKind {
		return
	}
	call := term.AsCall()
	if bound, ok := memoryBound(call); ok {
		f.memory = &bound
	}
	if call.FunctionName() != operators.Equals || len(call.Args()) != 2 {
		return
	}
	left, right := call.Args()[0], call.Args()[1]
	value, ok := text(right)
	if !ok {
		left, right = right, left
		value, ok = text(right)
	}
	if !ok || value == "" { // an empty value is also what .orValue("") gives for none
		return
	}
	if isDriver(left) {
		f.driver = value
	}
	if where, domain, name, ok := member(left); ok && where == "attributes" && domain == catalog.DriverName {
		f.equal[name] = value
	}
}

// memoryBound recognizes device.capacity["dovetail.dev"].memory.compareTo(quantity("25Gi")) >= 0,
// and isGreaterThan.
func memoryBound(call ast.CallExpr) (resource.Quantity, bool) {
	if args := call.Args(); len(args) == 2 && call.FunctionName() == operators.GreaterEquals {
		zero, ok := args[1], args[1].Kind() == ast.LiteralKind
		if !ok || zero.AsLiteral() != types.IntZero || args[0].Kind() != ast.CallKind || args[0].AsCall().FunctionName() != compareTo {
			return resource.Quantity{}, false
		}
		call = args[0].AsCall()
	} else if call.FunctionName() != isGreaterThan {
		return resource.Quantity{}, false
	}
	if !call.IsMemberFunction() || len(call.Args()) != 1 || call.Args()[0].Kind() != ast.CallKind {
		return resource.Quantity{}, false
	}
	where, domain, name, ok := member(call.Target())
	bound := call.Args()[0].AsCall()
	if !ok || where != "capacity" || domain != catalog.DriverName || name != "memory" || bound.FunctionName() != quantity || len(bound.Args()) != 1 {
		return resource.Quantity{}, false
	}
	value, _ := text(bound.Args()[0])
	q, err := resource.ParseQuantity(value)
	return q, err == nil
}

// look notes each attribute that the expression reads, wherever it does.
func (f *facts) look(e ast.Expr) {
	all, known := 0, 0
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			if e.AsIdent() == "device" {
				all++
			}
		case ast.SelectKind, ast.CallKind:
			if isDriver(e) || isShared(e) {
				known++
			}
			if where, domain, name, ok := member(e); ok && isAccess(e) {
				known++
				if where == "attributes" {
					f.reads[strings.TrimPrefix(domain+"/"+name, catalog.DriverName+"/")] = true
				}
			}
		default:
		}
	}))
	// Whatever else is done with the device may read anything.
	f.opaque = all != known
}

// isAccess: not orValue, whose target is one.
func isAccess(e ast.Expr) bool {
	return e.Kind() != ast.CallKind || e.AsCall().FunctionName() != orValue
}

// member recognizes device.attributes["domain"].name and device.capacity likewise, also
// written as ["name"], .?name or [?"name"], and with .orValue(…) after it.
func member(e ast.Expr) (where, domain, name string, ok bool) {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == orValue && e.AsCall().IsMemberFunction() {
		e = e.AsCall().Target()
	}
	of, name, ok := access(e)
	if !ok {
		return "", "", "", false
	}
	in, domain, ok := access(of)
	if !ok {
		return "", "", "", false
	}
	device, where, ok := access(in)
	return where, domain, name, ok && isDevice(device) && (where == "attributes" || where == "capacity")
}

// access recognizes of.name, of["name"], of.?name and of[?"name"].
func access(e ast.Expr) (of ast.Expr, name string, ok bool) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().Operand(), e.AsSelect().FieldName(), true
	case ast.CallKind:
		switch call := e.AsCall(); call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			name, ok = text(call.Args()[1])
			return call.Args()[0], name, ok
		}
	default:
	}
	return nil, "", false
}

func isDriver(e ast.Expr) bool { return isField(e, "driver") }
func isShared(e ast.Expr) bool { return isField(e, "allowMultipleAllocations") }

func isField(e ast.Expr, name string) bool {
	of, field, ok := access(e)
	return ok && field == name && isDevice(of)
}

func isDevice(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "device" }

func text(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}
