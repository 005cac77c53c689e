package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// checkCapacity refuses capacity that no device of the kind ever has.
func checkCapacity(requests map[resourceapi.QualifiedName]resource.Quantity, k machine.Kind, path *field.Path, f *Findings) {
	known := namesOf(k)
	if len(known) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		path, value := path.Key(string(name)), requests[name]
		if plain, ok := strings.CutPrefix(string(name), catalog.DriverName+"/"); ok && slices.Contains(known, plain) {
			f.refuse(path, fmt.Sprintf("the scheduler compares names as they are written: want %s, without the domain", plain))
			continue
		}
		if !slices.Contains(known, string(name)) {
			f.refuse(path, fmt.Sprintf("%s have no such capacity: want %s", plural(k), strings.Join(known, ", ")))
			continue
		}
		if why := catalog.OutOfBounds(k, string(name), value); why != "" {
			f.refuse(path, why)
		}
	}
}

// namesOf the capacities of a kind; of all kinds where it is not known. None where
// they cannot be told.
func namesOf(k machine.Kind) []string {
	if k != "" {
		return catalog.CapacityNames(k)
	}
	var all []string
	for _, k := range machine.Kinds {
		names := catalog.CapacityNames(k)
		if len(names) == 0 {
			return nil
		}
		all = append(all, names...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// plural is what people call devices of a kind.
func plural(k machine.Kind) string {
	switch k {
	case machine.KindMIG:
		return "partitions"
	case machine.KindMPS:
		return "shares by MPS"
	case machine.KindTimeSlice:
		return "time slices"
	case machine.KindGPU, machine.KindMonitor:
		return "GPUs"
	case machine.KindPair:
		return "pairs"
	case machine.KindNIC, machine.KindRDMA:
		return "NICs"
	case machine.KindVF:
		return "virtual functions"
	}
	return "devices"
}

// singular is one of them.
func singular(k machine.Kind) string {
	switch k {
	case machine.KindMPS:
		return "share by MPS"
	default:
		return strings.TrimSuffix(plural(k), "s")
	}
}
