package claim

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/parameters"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// reference names the claim in records and messages.
func reference(c *resourceapi.ResourceClaim) journal.Claim {
	return journal.Claim{Namespace: c.Namespace, Name: c.Name, UID: string(c.UID)}
}

// allocationOf adds to what a claim has of this driver, for each device, the
// configuration that applies to one of its kind. failure.Invalid with
// field and value where the claim asks for something that does not exist.
func allocationOf(c *resourceapi.ResourceClaim, results []plan.Result, m *machine.Machine) (plan.Allocation, error) {
	configs, err := parameters.Decode(c.Status.Allocation.Devices.Config)
	if err != nil {
		return plan.Allocation{}, err
	}
	kinds := map[string]string{}
	for i := range results {
		r := &results[i]
		device, known := m.Device(r.Device)
		if !known {
			return plan.Allocation{}, plan.NotHere(*r)
		}
		kinds[r.Request] = parameters.KindFor(device.Kind)
		if !r.AdminAccess {
			if err := checkRequested(c, r.Request, device.Kind); err != nil {
				return plan.Allocation{}, err
			}
		}
		config, err := configs.For(r.Request, kinds[r.Request])
		if err != nil {
			return plan.Allocation{}, err
		}
		r.Config = parameters.Plan(config)
	}
	return plan.Allocation{Results: results}, configs.Check(kinds)
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
