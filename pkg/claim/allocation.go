package claim

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

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
		config, err := configFor(results[i].Request, configs)
		if err != nil {
			return plan.Allocation{}, err
		}
		results[i].Config = planConfig(&config)
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
		result := plan.Result{Request: r.Request, Device: r.Device, AdminAccess: r.AdminAccess != nil && *r.AdminAccess}
		if r.ShareID != nil {
			result.ShareID = string(*r.ShareID)
		}
		memory, compute := r.ConsumedCapacity["memory"], r.ConsumedCapacity["compute"]
		result.Memory, result.Compute = uint64(max(0, memory.Value())), int(compute.Value())
		results = append(results, result)
	}
	if len(results) == 0 {
		return nil, failure.New(failure.Invalid, "status.allocation.devices.results: none is of driver %s", catalog.DriverName)
	}
	return results, nil
}

// scoped is a configuration and the requests that it is for; none means all.
type scoped struct {
	requests []string
	claims   bool // the claim's, not its class's
	where    string
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
			configs = append(configs, scoped{
				requests: c.Requests, claims: source == resourceapi.AllocationConfigSourceClaim, where: where(c, i), config: config,
			})
		}
	}
	return configs, nil
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

// configFor merges what applies to a request. What comes of it must make sense, too.
func configFor(request string, configs []scoped) (v1alpha1.GPUConfig, error) {
	var merged v1alpha1.GPUConfig
	for _, c := range configs {
		if !appliesTo(c.requests, request) {
			continue
		}
		if !c.claims {
			merged.Merge(c.config)
			continue
		}
		if err := merged.Override(c.config); err != nil {
			return merged, failure.New(failure.Invalid, "%s: %w", c.where, err)
		}
	}
	if err := merged.Validate().ToAggregate(); err != nil {
		return merged, failure.New(failure.Invalid, "request %s: class and claim together: %w", request, err)
	}
	return merged, nil
}

// planConfig is a configuration without what Kubernetes adds to it.
func planConfig(c *v1alpha1.GPUConfig) plan.Config {
	p := plan.Config{
		ComputeMode: machine.ComputeMode(ptr.Deref(c.ComputeMode, "")),
		Enforcement: machine.Enforcement(ptr.Deref(c.Enforcement, "")),
	}
	if c.Sharing == nil {
		return p
	}
	if c.Sharing.Strategy != nil {
		p.Sharing = strategies[*c.Sharing.Strategy]
	}
	if mps := c.Sharing.MPS; mps != nil {
		p.MPS.ThreadPercentage = int(ptr.Deref(mps.ActiveThreadPercentage, 0))
		p.LowPriority = ptr.Deref(mps.Priority, "") == v1alpha1.MPSPriorityBelowNormal
		if mps.MemoryLimit != nil {
			p.MPS.Memory = uint64(mps.MemoryLimit.Value())
		}
	}
	if slices := c.Sharing.TimeSlicing; slices != nil {
		p.Interval = machine.TimeSlice(ptr.Deref(slices.Interval, ""))
	}
	return p
}

var strategies = map[v1alpha1.SharingStrategy]machine.Kind{
	v1alpha1.SharingNone: machine.KindGPU, v1alpha1.SharingMPS: machine.KindMPS, v1alpha1.SharingTimeSlicing: machine.KindTimeSlice,
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
