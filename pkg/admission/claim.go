package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/admission/selector"
	"github.com/dovetail-dra/dovetail/pkg/parameters"
)

// Claim checks a claim's or a template's spec, which stands at path.
//
// Each alternative of firstAvailable is checked as if it were the one that the claim
// gets: any of them may be.
func (c *Checker) Claim(ctx context.Context, spec *resourceapi.ResourceClaimSpec, path *field.Path) Findings {
	var f Findings
	path = path.Child("devices")
	own := ownConfigs(spec, path, &f)
	kinds := map[string]string{}
	for _, r := range requestsOf(&spec.Devices, path) {
		if ctx.Err() != nil {
			return f // nobody waits for the answer any more
		}
		if kind, ours := c.request(ctx, r, own, &f); ours {
			kinds[r.name] = kind
		}
	}
	if slices.Contains(slices.Collect(maps.Values(kinds)), "") || len(kinds) == 0 {
		return f
	}
	if err := own.Check(kinds); err != nil {
		f.Refused = append(f.Refused, err.Error())
	}
	return f
}

// ownConfigs are the claim's parameters for this driver, without those that do not
// decode.
func ownConfigs(spec *resourceapi.ResourceClaimSpec, path *field.Path, f *Findings) parameters.List {
	var own parameters.List
	for i, c := range spec.Devices.Config[:min(len(spec.Devices.Config), resourceapi.DeviceConfigMaxSize)] {
		if e, ok := ownConfig(c.DeviceConfiguration, path.Child("config").Index(i), f); ok {
			e.Requests, e.Claims = c.Requests, true
			own = append(own, e)
		}
	}
	return own
}

// ownConfig decodes one configuration; false where it does not decode, which is refused,
// or is another driver's.
func ownConfig(c resourceapi.DeviceConfiguration, path *field.Path, f *Findings) (parameters.Entry, bool) {
	if !parameters.Ours(c) {
		return parameters.Entry{}, false
	}
	path = path.Child("opaque", "parameters")
	config, err := v1alpha1.Decode(c.Opaque.Parameters.Raw)
	if err != nil {
		f.refuse(path, err)
		return parameters.Entry{}, false
	}
	return parameters.Entry{Where: path.String(), Config: config}, true
}

// request checks one request as far as its class is known: one that is not there, or was
// made a moment ago, may still come, and then prepare says what is wrong. It returns the kind of
// configuration that the request's devices take, empty where that cannot be told;
// false for another driver's devices.
func (c *Checker) request(ctx context.Context, r request, own parameters.List, f *Findings) (configKind string, ours bool) {
	selectors, err := selector.CompileAll(r.selectors)
	if err != nil {
		return "", true // the API server has taken it, so it is of another version than ours
	}
	class := c.Classes.get(r.class)
	var configs parameters.List
	if class == nil && (c.Coming == nil || !c.Coming(ctx, r.class)) {
		f.warn(r.path.Child("deviceClassName"), fmt.Sprintf("there is no DeviceClass %q now, and a Pod with this claim waits until there is: `kubectl get deviceclasses` lists those that there are", r.class))
	}
	if class != nil {
		if class.broken != nil {
			f.warn(r.path.Child("deviceClassName"), fmt.Sprintf("DeviceClass %s: %v", class.name, class.broken))
			return "", true
		}
		configs = class.configFor(r.name)
		selectors = slices.Concat(class.selectors, selectors)
	}
	if selectors.Others() {
		return "", false
	}
	kind := selectors.Kind()
	if kind != "" {
		configKind = parameters.KindFor(kind)
	}
	config, err := append(configs, own...).For(r.name, configKind)
	if err != nil {
		f.refuseConfig(r, class, err)
		return configKind, true
	}
	plan := parameters.Plan(config)
	if kind != "" && !r.admin { // who only looks changes nothing, whatever the parameters say
		if err := plan.Suits(kind); err != nil {
			f.refuseConfig(r, class, err)
		}
	}
	if !selectors.Ours() {
		return configKind, true
	}
	if r.capacity != nil {
		checkCapacity(r.capacity.Requests, kind, r.path.Child("capacity", "requests"), f)
	}
	if len(f.Refused) == 0 {
		c.fit(ctx, want{request: r, selectors: selectors, config: plan}, f)
	}
	return configKind, true
}

// refuseConfig says of which request and class the configuration is that is wrong.
func (f *Findings) refuseConfig(r request, class *deviceClass, err error) {
	of := fmt.Sprintf("configuration of request %s", r.name)
	if class != nil {
		of += " of DeviceClass " + class.name
	}
	f.refuse(r.path, fmt.Sprintf("%s: %v", of, err))
}
