package v1alpha1

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Names of shapes, as the fields of Shape.
const (
	shapeMIG       = "mig"
	shapeMPS       = "mps"
	shapeTimeSlice = "timeSlice"
	shapeGPU       = "gpu"
	shapePair      = "pair"
	shapeNIC       = "nic"
	shapeRDMA      = "rdma"
	shapeVF        = "vf"
)

// set are the names of the shapes that are set: one, in what is valid.
func (s *Shape) set() []string {
	var set []string
	for _, shape := range []struct {
		name string
		set  bool
	}{
		{shapeMIG, s.MIG != nil},
		{shapeMPS, s.MPS != nil},
		{shapeTimeSlice, s.TimeSlice != nil},
		{shapeGPU, s.GPU != nil},
		{shapePair, s.Pair != nil},
		{shapeNIC, s.NIC != nil},
		{shapeRDMA, s.RDMA != nil},
		{shapeVF, s.VF != nil},
	} {
		if shape.set {
			set = append(set, shape.name)
		}
	}
	return set
}

func (s *Shape) ofNIC() bool { return s.NIC != nil || s.RDMA != nil || s.VF != nil }

func (s *Shape) validate(path *field.Path) field.ErrorList {
	switch set := s.set(); len(set) {
	case 0:
		return field.ErrorList{field.Required(path, "want exactly one of mig, mps, timeSlice, gpu, pair, nic, rdma and vf")}
	case 1:
	default:
		return field.ErrorList{field.Invalid(path, strings.Join(set, ", "), "want exactly one: for two shapes make two classes")}
	}
	switch {
	case s.MIG != nil:
		return s.MIG.validate(path.Child(shapeMIG))
	case s.MPS != nil:
		return s.MPS.validate(path.Child(shapeMPS))
	case s.TimeSlice != nil:
		return s.TimeSlice.validate(path.Child(shapeTimeSlice))
	case s.Pair != nil && s.Pair.Closeness != "":
		return oneOf(path.Child(shapePair, "closeness"), &s.Pair.Closeness, Closenesses...)
	}
	return nil
}

func (m *MIGShape) validate(path *field.Path) field.ErrorList {
	switch {
	case m.Profile != "" && m.Memory != nil, m.Profile == "" && m.Memory == nil:
		return field.ErrorList{field.Invalid(path, m.Profile, "want either profile or memory")}
	case m.Memory != nil:
		return atLeast(path.Child("memory"), m.Memory, "1Mi", "1Mi at least, in whole bytes, as 10G")
	case !migProfile.MatchString(m.Profile):
		return field.ErrorList{field.Invalid(path.Child("profile"), m.Profile, "want a profile as NVIDIA writes it, as 1g.10gb: dovetail-node inventory --profiles lists a node's")}
	}
	return nil
}

func (m *MPSShape) validate(path *field.Path) field.ErrorList {
	errs := atLeast(path.Child("memory"), m.Memory, "1Mi", "1Mi at least, in whole bytes, as 10Gi")
	errs = append(errs, oneOf(path.Child("enforcement"), m.Enforcement, EnforcementStrict, EnforcementBestEffort, EnforcementNone)...)
	if m.Compute != 0 {
		errs = append(errs, between(path.Child("compute"), &m.Compute, 1, 100, "percent")...)
	}
	if m.Compute != 0 && m.Memory == nil {
		errs = append(errs, field.Required(path.Child("memory"), fmt.Sprintf("compute %d needs it, since both together are the share's size", m.Compute)))
	}
	return errs
}

func (t *TimeSliceShape) validate(path *field.Path) field.ErrorList {
	errs := atLeast(path.Child("memory"), t.Memory, "1Mi", "1Mi at least, in whole bytes, as 10Gi")
	errs = append(errs, oneOf(path.Child("interval"), t.Interval, IntervalDefault, IntervalShort, IntervalMedium, IntervalLong)...)
	if t.Clients < 0 || t.Clients > 1000 {
		errs = append(errs, field.Invalid(path.Child("clients"), t.Clients, "want 1 to 1000"))
	}
	return errs
}
