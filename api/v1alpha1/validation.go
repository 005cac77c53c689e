package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate says what is wrong with the configuration: field, value, and what
// would be right.
func (c *GPUConfig) Validate() field.ErrorList {
	errs := oneOf(field.NewPath("computeMode"), c.ComputeMode, ComputeModeDefault, ComputeModeExclusiveProcess)
	errs = append(errs, oneOf(field.NewPath("enforcement"), c.Enforcement, EnforcementStrict, EnforcementBestEffort, EnforcementNone)...)
	for i, f := range c.Locked {
		errs = append(errs, oneOf(field.NewPath("locked").Index(i), &f, FieldComputeMode, FieldSharing, FieldEnforcement)...)
	}
	if c.Sharing != nil {
		errs = append(errs, c.Sharing.validate(field.NewPath("sharing"))...)
	}
	if c.ComputeMode != nil && c.Sharing.Uses(SharingMPS) {
		errs = append(errs, field.Invalid(field.NewPath("computeMode"), *c.ComputeMode, "MPS sets the compute mode itself: leave it out"))
	}
	return errs
}

func (s *Sharing) validate(path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("strategy"), s.Strategy, SharingNone, SharingMPS, SharingTimeSlicing)
	if s.MPS != nil {
		errs = append(errs, s.MPS.validate(path.Child("mps"))...)
		errs = append(errs, s.goesWith(path, "mps", SharingMPS)...)
	}
	if s.TimeSlicing != nil {
		errs = append(errs, oneOf(path.Child("timeSlicing", "interval"), s.TimeSlicing.Interval,
			IntervalDefault, IntervalShort, IntervalMedium, IntervalLong)...)
		errs = append(errs, s.goesWith(path, "timeSlicing", SharingTimeSlicing)...)
	}
	return errs
}

// goesWith refuses what configures another strategy than the chosen one.
func (s *Sharing) goesWith(path *field.Path, name string, strategy SharingStrategy) field.ErrorList {
	if s.Strategy == nil || *s.Strategy == strategy {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child(name),
		"the strategy is "+string(*s.Strategy)+": remove it, or set strategy to "+string(strategy))}
}

// Uses says whether s asks for that strategy.
func (s *Sharing) Uses(strategy SharingStrategy) bool {
	return s != nil && s.Strategy != nil && *s.Strategy == strategy
}

func (m *MPSSharing) validate(path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("priority"), m.Priority, MPSPriorityNormal, MPSPriorityBelowNormal)
	if p := m.ActiveThreadPercentage; p != nil && (*p < 1 || *p > 100) {
		errs = append(errs, field.Invalid(path.Child("activeThreadPercentage"), *p, "want 1 to 100 percent: "+nearest(*p)))
	}
	if least := resource.MustParse("1Mi"); m.MemoryLimit != nil && m.MemoryLimit.Cmp(least) < 0 {
		errs = append(errs, field.Invalid(path.Child("memoryLimit"), m.MemoryLimit.String(), "want 1Mi at least"))
	}
	return errs
}

func nearest(percentage int32) string {
	if percentage < 1 {
		return "the nearest is 1"
	}
	return "the nearest is 100"
}

func oneOf[T ~string](path *field.Path, value *T, valid ...T) field.ErrorList {
	if value == nil || slices.Contains(valid, *value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *value, valid)}
}
