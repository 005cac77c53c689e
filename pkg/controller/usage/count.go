package usage

import (
	"context"
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/controller/compact"
)

// tally is what was counted for a class, by pool, with the selectors of that time.
type tally struct {
	selectors []string
	programs  []cel.CompilationResult
	looks     map[string]bool // whether the class takes devices that look so
	key       []byte          // of the look in hand
	pools     map[string]counted
}

func newTally(selectors []string) *tally {
	return &tally{selectors: selectors, looks: map[string]bool{}, pools: map[string]counted{}}
}

type counted struct {
	version uint64
	Counts
}

// Count what the selectors of a DeviceClass take, which the scheduler's own evaluator
// says. An error says which selector cannot be evaluated, and of which device, the first
// by name of several, so that it is the same each time; what is allocated is known all
// the same.
func (s *Store) Count(ctx context.Context, class string, spec *resourceapi.DeviceClassSpec) (Counts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := Counts{Allocated: s.allocated[class]}
	t, err := s.tally(class, spec)
	if err != nil {
		return sum, err
	}
	failedIn := ""
	var failed error
	for name, p := range s.pools {
		known, ok := t.pools[name]
		if !ok || known.version != p.version {
			counts, err := p.count(func(d *resourceapi.Device) (bool, error) { return t.takes(ctx, d) }, s.ruledOut(name))
			if err != nil {
				if failed == nil || name < failedIn {
					failedIn, failed = name, err
				}
				continue
			}
			known = counted{p.version, counts}
			t.pools[name] = known
		}
		sum.add(known.Counts)
	}
	if failed != nil {
		return Counts{Allocated: sum.Allocated}, fmt.Errorf("pool %s: %w", failedIn, failed)
	}
	return sum, nil
}

// Follow has Classes name a class from now on, also one that cannot be counted.
func (s *Store) Follow(class string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.classes[class] == nil {
		s.classes[class] = newTally(nil)
	}
}

// Classes that were followed or counted, and not forgotten.
func (s *Store) Classes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.classes))
}

// Forget a class that has gone.
func (s *Store) Forget(class string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.classes, class)
}

// tally of the class; a new one where its selectors have changed.
func (s *Store) tally(class string, spec *resourceapi.DeviceClassSpec) (*tally, error) {
	var selectors []string
	for _, selector := range spec.Selectors {
		if selector.CEL != nil {
			selectors = append(selectors, selector.CEL.Expression)
		}
	}
	if t, ok := s.classes[class]; ok && slices.Equal(t.selectors, selectors) {
		return t, nil
	}
	t := newTally(selectors)
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true})
	for _, expression := range selectors {
		program := compiler.CompileCELExpression(expression, cel.Options{})
		if program.Error != nil {
			return nil, fmt.Errorf("selector %s: %w", expression, program.Error)
		}
		t.programs = append(t.programs, program)
	}
	s.classes[class] = t
	return t, nil
}

// maxLooks are remembered; far fewer are different.
const maxLooks = 10_000

func (t *tally) takes(ctx context.Context, d *resourceapi.Device) (bool, error) {
	t.key = compact.AppendLook(t.key[:0], d)
	if known, ok := t.looks[string(t.key)]; ok {
		return known, nil
	}
	takes := true
	for i, program := range t.programs {
		ok, _, err := program.DeviceMatches(ctx, cel.Device{
			Driver: catalog.DriverName, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity,
		})
		if err != nil {
			return false, fmt.Errorf("device %s: selector %s: %w", d.Name, t.selectors[i], err)
		}
		takes = takes && ok
		if !takes {
			break
		}
	}
	if len(t.looks) >= maxLooks {
		clear(t.looks)
	}
	t.looks[string(t.key)] = takes
	return takes, nil
}
