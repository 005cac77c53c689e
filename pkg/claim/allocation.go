package claim

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// reference names the claim in records and messages.
func reference(c *resourceapi.ResourceClaim) journal.Claim {
	return journal.Claim{Namespace: c.Namespace, Name: c.Name, UID: string(c.UID)}
}

// allocationOf takes from a claim what concerns this driver: devices and, for
// each, the configuration that applies. failure.Invalid with field and value where
// the claim asks for something that does not exist.
func allocationOf(c *resourceapi.ResourceClaim, pool string) (plan.Allocation, error) {
	results, err := resultsOf(c, pool)
	if err != nil {
		return plan.Allocation{}, err
	}
	configs, err := decodeConfigs(c.Status.Allocation.Devices.Config)
	if err != nil {
		return plan.Allocation{}, err
	}
	for i := range results {
		if config := configFor(results[i].Request, configs); config.ComputeMode != nil {
			results[i].ComputeMode = machine.ComputeMode(*config.ComputeMode)
		}
	}
	return plan.Allocation{Results: results}, nil
}

// resultsOf is the allocation without its configuration.
func resultsOf(c *resourceapi.ResourceClaim, pool string) ([]plan.Result, error) {
	if c.Status.Allocation == nil {
		return nil, failure.New(failure.Invalid, "status.allocation: the claim is not allocated")
	}
	var results []plan.Result
	for i, r := range c.Status.Allocation.Devices.Results {
		if r.Driver != catalog.DriverName {
			continue
		}
		if r.Pool != pool {
			return nil, failure.New(failure.Invalid,
				"status.allocation.devices.results[%d].pool: %q is another node's pool, this node's is %q: delete the Pod to have it scheduled again",
				i, r.Pool, pool)
		}
		results = append(results, plan.Result{Request: r.Request, Device: r.Device, AdminAccess: r.AdminAccess != nil && *r.AdminAccess})
	}
	if len(results) == 0 {
		return nil, failure.New(failure.Invalid, "status.allocation.devices.results: none is of driver %s", catalog.DriverName)
	}
	return results, nil
}

// scoped is a configuration and the requests that it is for; none means all.
type scoped struct {
	requests []string
	config   *v1alpha1.GPUConfig
}

// decodeConfigs decodes this driver's parameters in the order in which they are
// to be applied: those of classes, then those of the claim, each in its order.
func decodeConfigs(allocated []resourceapi.DeviceAllocationConfiguration) ([]scoped, error) {
	var configs []scoped
	for _, source := range []resourceapi.AllocationConfigSource{
		resourceapi.AllocationConfigSourceClass, resourceapi.AllocationConfigSourceClaim,
	} {
		for i, c := range allocated {
			if c.Source != source || c.Opaque == nil || c.Opaque.Driver != catalog.DriverName {
				continue
			}
			config, err := v1alpha1.Decode(c.Opaque.Parameters.Raw)
			if err != nil {
				return nil, failure.New(failure.Invalid, "%s", describe(c, i, err))
			}
			configs = append(configs, scoped{requests: c.Requests, config: config})
		}
	}
	return configs, nil
}

// describe says whose parameters are wrong, in words that lead to the object that
// people wrote.
func describe(c resourceapi.DeviceAllocationConfiguration, index int, err error) string {
	where := "the claim's spec.devices.config"
	if c.Source == resourceapi.AllocationConfigSourceClass {
		where = "the DeviceClass's spec.config"
	}
	if len(c.Requests) > 0 {
		where += fmt.Sprintf(" for requests %q", c.Requests)
	}
	// What is wrong can be as long as the parameters themselves.
	return fmt.Sprintf("opaque parameters in %s (config %d of the allocation): %.1000s", where, index, err)
}

func configFor(request string, configs []scoped) v1alpha1.GPUConfig {
	var merged v1alpha1.GPUConfig
	for _, c := range configs {
		if appliesTo(c.requests, request) {
			merged.Merge(c.config)
		}
	}
	return merged
}

// appliesTo says whether a configuration for the requests is for this one. A
// request's name stands for all of its alternatives.
func appliesTo(requests []string, request string) bool {
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
