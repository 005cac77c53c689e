package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Merge sets in c each field that over sets. A strategy drops what configures
// another.
func (c *GPUConfig) Merge(over *GPUConfig) {
	set(&c.ComputeMode, over.ComputeMode)
	set(&c.Enforcement, over.Enforcement)
	c.Locked = append(slices.Clone(c.Locked), over.Locked...)
	if over.Sharing == nil {
		return
	}
	merged := Sharing{}
	if c.Sharing != nil {
		merged = *c.Sharing
	}
	merged.merge(over.Sharing)
	c.Sharing = &merged
}

// Override is Merge for a claim's configuration over its class's: what the class has
// locked the claim cannot set, and it cannot lock anything itself.
func (c *GPUConfig) Override(over *GPUConfig) error {
	var errs field.ErrorList
	if len(over.Locked) > 0 {
		errs = append(errs, field.Forbidden(field.NewPath("locked"), "only a DeviceClass can lock fields: remove it from the claim"))
	}
	for _, f := range []struct {
		field Field
		sets  bool
	}{
		{FieldComputeMode, over.ComputeMode != nil},
		{FieldSharing, over.Sharing != nil},
		{FieldEnforcement, over.Enforcement != nil},
	} {
		if f.sets && slices.Contains(c.Locked, f.field) {
			errs = append(errs, field.Forbidden(field.NewPath(string(f.field)), "the DeviceClass has locked it: remove it from the claim, or use another class"))
		}
	}
	if err := errs.ToAggregate(); err != nil {
		return err
	}
	c.Merge(over)
	return nil
}

func (s *Sharing) merge(over *Sharing) {
	if over.MPS != nil {
		merged := MPSSharing{}
		if s.MPS != nil {
			merged = *s.MPS
		}
		set(&merged.ActiveThreadPercentage, over.MPS.ActiveThreadPercentage)
		set(&merged.MemoryLimit, over.MPS.MemoryLimit)
		set(&merged.Priority, over.MPS.Priority)
		s.MPS = &merged
	}
	if over.TimeSlicing != nil {
		merged := TimeSlicing{}
		if s.TimeSlicing != nil {
			merged = *s.TimeSlicing
		}
		set(&merged.Interval, over.TimeSlicing.Interval)
		s.TimeSlicing = &merged
	}
	if over.Strategy == nil {
		return
	}
	s.Strategy = over.Strategy
	if *s.Strategy != SharingMPS {
		s.MPS = nil
	}
	if *s.Strategy != SharingTimeSlicing {
		s.TimeSlicing = nil
	}
}

func set[T any](to **T, over *T) {
	if over != nil {
		*to = over
	}
}

// DeepCopyObject implements runtime.Object.
func (c *GPUConfig) DeepCopyObject() runtime.Object {
	if c == nil {
		return nil
	}
	out := &GPUConfig{TypeMeta: c.TypeMeta}
	out.Merge(c)
	return out
}
