// Package admission looks at what people write before it is stored: claims, their
// templates and DeviceClasses with this driver's parameters, and PartitionClasses. What
// prepare would refuse is refused here, by the same code and in the same words; what
// fits no device of the cluster, as it is now, is let through with a warning.
//
// It reads no cluster: Classes and a Fleet are kept up to date by whoever has
// informers.
package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dovetail-dra/dovetail/pkg/admission/fleet"
)

// Checker checks objects against what the cluster has.
type Checker struct {
	Classes *Classes
	Fleet   *fleet.Fleet
	// Coming says whether there is a PartitionClass of a name, so that its DeviceClass is
	// about to be made. Nil: of none.
	Coming func(ctx context.Context, name string) bool
}

// Findings are what there is to say of an object. Each line begins with a field.
type Findings struct {
	Refused  []string // the object cannot be stored
	Warnings []string // it can, but will not do what it says
}

func (f *Findings) refuse(path *field.Path, problem any) {
	f.Refused = add(f.Refused, path, problem)
}

func (f *Findings) warn(path *field.Path, problem any) {
	f.Warnings = add(f.Warnings, path, problem)
}

// add leaves out what is there already: one mistake in the configuration of several
// requests is said once. Messages can be as long as the parameters themselves.
func add(lines []string, path *field.Path, problem any) []string {
	line := fmt.Sprintf("%s: %.1000v", path, problem)
	for _, l := range lines {
		if l == line {
			return lines
		}
	}
	return append(lines, line)
}
