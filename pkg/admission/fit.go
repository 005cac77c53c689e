package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/admission/fleet"
	"github.com/dovetail-dra/dovetail/pkg/admission/selector"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// want is what a request asks for, its class and itself together.
type want struct {
	request
	selectors selector.List
	config    plan.Config
}

// fit warns of what no device of the cluster can give. It is silent where it cannot
// tell: about a cluster without devices, and about selectors for one device of many
// that are alike.
func (c *Checker) fit(ctx context.Context, w want, f *Findings) {
	models := c.Fleet.Models()
	reads, all := w.selectors.Reads()
	if len(models) == 0 || !all || slices.ContainsFunc(reads, fleet.Individual) {
		return
	}
	taken, err := take(ctx, w.selectors, models)
	switch {
	case err != nil:
		f.warn(w.path, fmt.Sprintf("a selector fails, which ends the scheduling of its Pod: %v%s", err, misread(reads, ofKind(models, w.selectors.Kind()))))
		return
	case len(taken) == 0:
		f.warn(w.path, w.nothing(models))
		return
	}
	w.monitors(taken, f)
	w.capacities(taken, models, f)
	w.sharing(taken, f)
}

// monitors warns of a request that is given none, since they are for administrators and tainted.
func (w *want) monitors(taken []*fleet.Model, f *Findings) {
	switch {
	case slices.ContainsFunc(taken, func(m *fleet.Model) bool { return m.Kind() != machine.KindMonitor }):
	case !w.admin:
		f.warn(w.path.Child("adminAccess"), "devices of type monitor are for requests that set it to true: set it, in a namespace that an administrator has labelled for that, or claim a GPU by another class")
	case !w.tolerant:
		f.warn(w.path.Child("tolerations"), fmt.Sprintf("devices of type monitor have the taint %s: tolerate it, by {key: %[1]s, operator: Exists}", catalog.TaintMonitor))
	}
}

// take returns the models that pass the selectors.
func take(ctx context.Context, selectors selector.List, models []*fleet.Model) ([]*fleet.Model, error) {
	var taken []*fleet.Model
	for _, m := range models {
		ok, err := selectors.Takes(ctx, m.Device)
		if err != nil {
			return nil, err
		}
		if ok {
			taken = append(taken, m)
		}
	}
	return taken, nil
}

// nothing says why no model passes, as far as that can be told.
func (w *want) nothing(models []*fleet.Model) string {
	kind := w.selectors.Kind()
	alike := ofKind(models, kind)
	memory, profile := w.selectors.Memory(), w.selectors.Equal("profile")
	switch {
	case len(alike) == 0:
		return fmt.Sprintf("this cluster has no %s now", plural(kind))
	case profile != "" && !offers(alike, profile):
		return noProfile(alike, profile)
	case memory != nil && enough(alike, "memory", *memory) == nil:
		return tooMuch(kind, "memory", *memory, most(alike, "memory"))
	}
	return "no device of this cluster passes the selectors of the request and its DeviceClass now"
}

// offers says whether there are partitions of a profile.
func offers(partitions []*fleet.Model, profile string) bool {
	return slices.ContainsFunc(partitions, func(m *fleet.Model) bool { return m.Text("profile") == profile })
}

// noProfile: "no GPU of this cluster offers profile 1g.11gb now; the nearest is 1g.10gb (9.75Gi) on H100".
func noProfile(partitions []*fleet.Model, profile string) string {
	return fmt.Sprintf("no GPU of this cluster offers profile %s now%s", profile, nearestProfile(partitions, profile))
}

// capacities warns of each that no model has that passes the selectors.
func (w *want) capacities(taken, models []*fleet.Model, f *Findings) {
	if w.capacity == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(w.capacity.Requests)) {
		wanted := w.capacity.Requests[name]
		if enough(taken, name, wanted) != nil {
			continue
		}
		path := w.path.Child("capacity", "requests").Key(string(name))
		kind := taken[0].Kind()
		if nearest := enough(ofKind(models, kind), name, wanted); nearest != nil {
			f.warn(path, fmt.Sprintf("%s fits no %s that is asked for; the nearest of this cluster is %s", wanted.String(), singular(kind), describe(nearest, name)))
			continue
		}
		f.warn(path, tooMuch(kind, name, wanted, most(ofKind(models, kind), name)))
	}
}

// tooMuch: "200Gi fits no partition of this cluster; the nearest is 7g.141gb (139.75Gi) on H200".
func tooMuch(k machine.Kind, name resourceapi.QualifiedName, wanted resource.Quantity, nearest *fleet.Model) string {
	message := fmt.Sprintf("%s fits no %s of this cluster", wanted.String(), singular(k))
	if nearest == nil {
		return message
	}
	return message + "; the nearest is " + describe(nearest, name)
}

func ofKind(models []*fleet.Model, k machine.Kind) []*fleet.Model {
	if k == "" {
		return models
	}
	return slices.DeleteFunc(slices.Clone(models), func(m *fleet.Model) bool { return m.Kind() != k })
}

// enough returns the model with the least that is enough; nil where none is.
func enough(models []*fleet.Model, name resourceapi.QualifiedName, wanted resource.Quantity) *fleet.Model {
	var found *fleet.Model
	for _, m := range models {
		has, ok := given(m, name)
		if !ok || has.Cmp(wanted) < 0 {
			continue
		}
		if found == nil {
			found = m
			continue
		}
		if least, _ := given(found, name); has.Cmp(least) < 0 {
			found = m
		}
	}
	return found
}

// most returns the model with the most; nil where none has any.
func most(models []*fleet.Model, name resourceapi.QualifiedName) *fleet.Model {
	var found *fleet.Model
	for _, m := range models {
		has, ok := given(m, name)
		if !ok {
			continue
		}
		if found != nil {
			if most, _ := given(found, name); has.Cmp(most) <= 0 {
				continue
			}
		}
		found = m
	}
	return found
}

// given is the most that one request can have of a device.
func given(m *fleet.Model, name resourceapi.QualifiedName) (resource.Quantity, bool) {
	capacity, ok := m.Capacity[name]
	if policy := capacity.RequestPolicy; policy != nil {
		if r := policy.ValidRange; r != nil && r.Max != nil {
			return *r.Max, ok
		}
		if values := policy.ValidValues; len(values) > 0 {
			return slices.MaxFunc(values, func(a, b resource.Quantity) int { return a.Cmp(b) }), ok
		}
	}
	return capacity.Value, ok
}
