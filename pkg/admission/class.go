package admission

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dovetail-dra/dovetail/pkg/admission/selector"
	"github.com/dovetail-dra/dovetail/pkg/parameters"
)

// Class checks the parameters for this driver of a DeviceClass, whose spec stands at
// path: each by itself, all together, and for the kind of device that the class is of.
func (c *Checker) Class(spec *resourceapi.DeviceClassSpec, path *field.Path) Findings {
	var f Findings
	list := classConfigs(spec, path, &f)
	if len(f.Refused) > 0 || len(list) == 0 {
		return f
	}
	selectors, err := selector.CompileAll(spec.Selectors)
	if err != nil {
		return f // as in Claim
	}
	path = path.Child("config")
	if selectors.Others() {
		f.warn(path, "the class is for devices of another driver, which never sees these parameters")
		return f
	}
	kind, configKind := selectors.Kind(), ""
	if kind != "" {
		configKind = parameters.KindFor(kind)
	}
	merged, err := list.Class(configKind)
	if err != nil {
		f.Refused = append(f.Refused, err.Error())
		return f
	}
	if kind != "" {
		if err := parameters.Plan(merged[configKind]).Suits(kind); err != nil {
			f.refuse(path, fmt.Sprintf("for devices of type %s: %v", kind, err))
		}
	}
	return f
}

// classConfigs are the class's parameters for this driver, without those that do not
// decode.
func classConfigs(spec *resourceapi.DeviceClassSpec, path *field.Path, f *Findings) parameters.List {
	var list parameters.List
	for i, c := range spec.Config {
		if e, ok := ownConfig(c.DeviceConfiguration, path.Child("config").Index(i), f); ok {
			list = append(list, e)
		}
	}
	return list
}
