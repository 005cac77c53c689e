package class

import (
	"errors"
	"maps"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Offer is what a node publishes: what the classes ask for of its machine, and what
// claims may have of it from before.
type Offer struct {
	// Machine with the sizes of the classes beside those that it has anyway.
	Machine machine.Machine

	wanted *Wanted
	anyway int // of the machine's sizes, from the first
	kept   map[string]bool
}

var _ catalog.Offer = &Offer{}

// Offer chooses from a machine. The error has an Unoffered for each class of which
// something cannot be published; all else is.
func (w *Wanted) Offer(m *machine.Machine) (*Offer, error) {
	o := &Offer{Machine: *m, wanted: w, anyway: len(m.Sharing.Sizes)}
	o.Machine.Sharing.Sizes, o.Machine.Sharing.Kept = slices.Clone(m.Sharing.Sizes), nil
	var errs []error
	for i := range m.GPUs {
		for _, size := range w.Sizes(&m.GPUs[i]) {
			switch at := slices.IndexFunc(o.Machine.Sharing.Sizes, func(s machine.Size) bool { return s.Name == size.Name }); {
			case at < 0:
				o.Machine.Sharing.Sizes = append(o.Machine.Sharing.Sizes, size)
			case at < o.anyway:
				errs = append(errs, unoffered(size.Name, "this node has a size of that name from its own configuration, which is published instead: take it out of the chart's shares, or name the class otherwise"))
			}
		}
	}
	for _, d := range o.Machine.Devices() {
		_, without := o.conditions(d)
		for _, u := range without {
			errs = append(errs, u)
		}
	}
	return o, joined(errs)
}

// joined are the errors, each once.
func joined(errs []error) error {
	said := map[string]bool{}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		before := said[err.Error()]
		said[err.Error()] = true
		return before
	})...)
}

// Names of the devices that classes ask for, or that are published anyway.
func (o *Offer) Names() map[string]bool {
	names := map[string]bool{}
	for _, d := range o.Machine.Devices() {
		if o.asked(d) {
			names[d.Name] = true
		}
	}
	return names
}

// Keep has devices of these names published, too, if the machine has them. Of a size
// that no class tells of, only the name is known, and a size may have changed to one that
// the GPU does not have: then it is the least, of which nobody else gets any.
func (o *Offer) Keep(names map[string]bool) {
	o.kept = names
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d, ok := o.Machine.Device(name)
		if !ok || d.Size == nil {
			continue
		}
		o.Machine.Sharing.Kept = append(o.Machine.Sharing.Kept, name)
		if slices.ContainsFunc(o.Machine.Sharing.Sizes, sameAs(d.Size)) {
			continue
		}
		if at := slices.IndexFunc(o.wanted.sizes, sameAs(d.Size)); at >= 0 {
			o.Machine.Sharing.Sizes = append(o.Machine.Sharing.Sizes, o.wanted.sizes[at])
		}
	}
}

// Presence of a device in what is published.
func (o *Offer) Presence(d machine.Device) catalog.Presence {
	switch {
	case o.asked(d):
		return catalog.Present
	case o.kept[d.Name]:
		return catalog.Leaving
	}
	return catalog.Absent
}

// asked says whether a class asks for the device, or none need do so.
func (o *Offer) asked(d machine.Device) bool {
	switch {
	case d.Partition != nil:
		return o.wanted.Partition(d.GPU, d.Partition.Profile)
	case d.Size != nil:
		asks := func(s machine.Size) bool {
			_, fits := s.Each(d.GPU.Memory.Usable())
			return fits && sameAs(d.Size)(s)
		}
		return slices.ContainsFunc(o.Machine.Sharing.Sizes[:o.anyway], asks) || slices.ContainsFunc(o.wanted.Sizes(d.GPU), asks)
	}
	return true
}

// Conditions is the device's value of AttributeConditions.
func (o *Offer) Conditions(d machine.Device) string {
	codes, _ := o.conditions(d) // Offer has told of the others
	return codes
}

func (o *Offer) conditions(d machine.Device) (string, []*Unoffered) {
	if d.GPU == nil {
		return o.wanted.NICConditions(d.Kind)
	}
	return o.wanted.Conditions(d.GPU, d.Kind)
}

// sameAs finds a size by what a device of it is called.
func sameAs(size *machine.Size) func(machine.Size) bool {
	return func(s machine.Size) bool { return s.Name == size.Name && s.Kind == size.Kind }
}
