// Package parameters finds, among the opaque parameters of a class and a claim, those
// that apply to a request. Who prepares a claim and who checks it before anybody
// prepares it ask here, so that both take and refuse the same.
package parameters

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// List has this driver's parameters in the order in which they are to be applied:
// those of classes, then those of the claim, each in its order.
type List []Entry

// Entry is a configuration and the requests that it is for.
type Entry struct {
	// Requests by name, "request/subrequest" for one of several alternatives; none
	// means all.
	Requests []string
	// Claims: it is the claim's own, not its class's.
	Claims bool
	// Where it stands, for people.
	Where  string
	Config v1alpha1.Config
}

// Decode reads an allocation's configuration. failure.Invalid says whose parameters
// are wrong: field, value, and what would be right.
func Decode(allocated []resourceapi.DeviceAllocationConfiguration) (List, error) {
	var list List
	for _, source := range []resourceapi.AllocationConfigSource{
		resourceapi.AllocationConfigSourceClass, resourceapi.AllocationConfigSourceClaim,
	} {
		for i, c := range allocated {
			if c.Source != source || !Ours(c.DeviceConfiguration) {
				continue
			}
			config, err := v1alpha1.Decode(c.Opaque.Parameters.Raw)
			if err != nil {
				return nil, failure.New(failure.Invalid, "%s", describe(c, i, err))
			}
			list = append(list, Entry{
				Requests: c.Requests, Claims: source == resourceapi.AllocationConfigSourceClaim, Where: where(c, i), Config: config,
			})
		}
	}
	return list, nil
}

// Ours says whether a configuration is for this driver.
func Ours(c resourceapi.DeviceConfiguration) bool {
	return c.Opaque != nil && c.Opaque.Driver == catalog.DriverName
}

// describe says whose parameters are wrong, in words that lead to the object that
// people wrote.
func describe(c resourceapi.DeviceAllocationConfiguration, index int, err error) string {
	// What is wrong can be as long as the parameters themselves.
	return fmt.Sprintf("%s: %.1000s", where(c, index), err)
}

func where(c resourceapi.DeviceAllocationConfiguration, index int) string {
	where := "the claim's spec.devices.config"
	if c.Source == resourceapi.AllocationConfigSourceClass {
		where = "the DeviceClass's spec.config"
	}
	if len(c.Requests) > 0 {
		where += fmt.Sprintf(" for requests %q", c.Requests)
	}
	return fmt.Sprintf("opaque parameters in %s (config %d of the allocation)", where, index)
}

// For merges what applies to a request ("request/subrequest" for one of several
// alternatives) whose devices are configured by that kind; empty: by the kind of what
// applies. What comes of it must make sense, too: failure.Invalid where it does not,
// where a claim sets what its class has locked, or where what names the request is of
// another kind. It is nil where nothing applies and no kind is said.
//
// What is for all requests, or for all alternatives of one, may be of another kind: it
// is for the others, and Check says where there are none.
func (l List) For(request, kind string) (v1alpha1.Config, error) {
	merged := v1alpha1.New(kind)
	for _, c := range l {
		if !AppliesTo(c.Requests, request) {
			continue
		}
		if merged == nil {
			merged = v1alpha1.New(c.Config.Kind())
		}
		if merged.Kind() != c.Config.Kind() && !slices.Contains(c.Requests, request) {
			continue
		}
		apply := v1alpha1.Merge
		if c.Claims {
			apply = v1alpha1.Override
		}
		if err := apply(merged, c.Config); err != nil {
			return merged, failure.New(failure.Invalid, "%s: %w", c.Where, err)
		}
	}
	if merged == nil {
		return nil, nil
	}
	if err := merged.Validate().ToAggregate(); err != nil {
		return merged, failure.New(failure.Invalid, "request %s: class and claim together: %w", request, err)
	}
	return merged, nil
}

// Check refuses what is for all requests and of a kind that configures none of them,
// with failure.Invalid. kinds has the kind of each request.
func (l List) Check(kinds map[string]string) error {
	of := slices.Compact(slices.Sorted(maps.Values(kinds)))
	for request := range kinds {
		if resourceclaim.BaseRequestRef(request) != request {
			return nil // it can be for an alternative that was not taken
		}
	}
	for _, c := range l {
		if len(c.Requests) == 0 && !slices.Contains(of, c.Config.Kind()) {
			return failure.New(failure.Invalid, "%s: kind: %s, but the claim's devices are configured by %s",
				c.Where, c.Config.Kind(), strings.Join(of, " and "))
		}
	}
	return nil
}

// Class merges what a class has for any request, by kind; kind, where it is not empty,
// is the one that configures the class's devices. failure.Invalid where it does not
// make sense.
func (l List) Class(kind string) (map[string]v1alpha1.Config, error) {
	merged := map[string]v1alpha1.Config{}
	for _, c := range l {
		k := c.Config.Kind()
		if merged[k] == nil {
			merged[k] = v1alpha1.New(k)
		}
		if kind != "" && k != kind {
			return nil, failure.New(failure.Invalid, "%s: kind: %s, but the class's devices are configured by %s", c.Where, k, kind)
		}
		if err := v1alpha1.Merge(merged[k], c.Config); err != nil {
			return nil, failure.New(failure.Invalid, "%s: %w", c.Where, err)
		}
		if err := merged[k].Validate().ToAggregate(); err != nil {
			return nil, failure.New(failure.Invalid, "%s: with what stands before it: %w", c.Where, err)
		}
	}
	return merged, nil
}

// AppliesTo says whether a configuration for the requests is for this one. A
// request's name stands for all of its alternatives.
func AppliesTo(requests []string, request string) bool {
	if len(requests) == 0 {
		return true
	}
	for _, r := range requests {
		if r == request || r == resourceclaim.BaseRequestRef(request) {
			return true
		}
	}
	return false
}
