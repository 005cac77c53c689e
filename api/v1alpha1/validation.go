package v1alpha1

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate implements Config.
func (c *GPUConfig) Validate() field.ErrorList { return append(c.validate(nil), validateLocks(c)...) }

// Validate implements Config.
func (c *NICConfig) Validate() field.ErrorList { return append(c.validate(nil), validateLocks(c)...) }

// Validate implements Config.
func (c *PairConfig) Validate() field.ErrorList {
	errs := append(c.GPU.validate(field.NewPath("gpu")), c.NIC.validate(field.NewPath("nic"))...)
	return append(errs, validateLocks(c)...)
}

// validateLocks takes the names of settings alone.
func validateLocks(c Config) field.ErrorList {
	var lockable []Field
	for prefix, settings := range c.groups() {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(settings)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			lockable = append(lockable, Field(prefix+name))
		}
	}
	slices.Sort(lockable)
	var errs field.ErrorList
	for i, f := range *c.locks() {
		errs = append(errs, oneOf(field.NewPath("locked").Index(i), &f, lockable...)...)
	}
	return errs
}

func (s *GPUSettings) validate(path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("computeMode"), s.ComputeMode, ComputeModeDefault, ComputeModeExclusiveProcess)
	errs = append(errs, oneOf(path.Child("enforcement"), s.Enforcement, EnforcementStrict, EnforcementBestEffort, EnforcementNone)...)
	if s.Sharing != nil {
		errs = append(errs, s.Sharing.validate(path.Child("sharing"))...)
	}
	if s.ComputeMode != nil && s.Sharing.Uses(SharingMPS) {
		errs = append(errs, field.Invalid(path.Child("computeMode"), *s.ComputeMode, "MPS sets the compute mode itself: leave it out"))
	}
	if s.ComputeMode != nil && *s.ComputeMode == ComputeModeExclusiveProcess && s.Sharing.Uses(SharingTimeSlicing) {
		errs = append(errs, field.Invalid(path.Child("computeMode"), *s.ComputeMode, "one process takes turns with nobody: use "+string(ComputeModeDefault)+", or leave out sharing.strategy"))
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
	errs = append(errs, between(path.Child("activeThreadPercentage"), m.ActiveThreadPercentage, 1, 100, "percent")...)
	if least := resource.MustParse("1Mi"); m.MemoryLimit != nil && m.MemoryLimit.Cmp(least) < 0 {
		errs = append(errs, field.Invalid(path.Child("memoryLimit"), m.MemoryLimit.String(), "want 1Mi at least"))
	}
	return errs
}

func oneOf[T ~string](path *field.Path, value *T, valid ...T) field.ErrorList {
	if value == nil || slices.Contains(valid, *value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *value, valid)}
}
