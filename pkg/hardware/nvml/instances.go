package nvml

import (
	"cmp"
	"slices"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// mostInstances is more than a GPU can have of one profile. NVML's own number is too
// low for some models.
const mostInstances = 64

// place is where a compute instance is.
type place struct{ gpuInstance, computeInstance int }

// instancesOf reads the GPU's instances profile by profile: MIG devices would not show
// one without a compute instance. What goes away meanwhile is left out.
func instancesOf(d api.Device, profiles []api.GpuInstanceProfileInfo_v2) ([]machine.GPUInstance, error) {
	var instances []machine.GPUInstance
	for i := range profiles {
		found, ret := d.GetGpuInstances(&api.GpuInstanceProfileInfo{Id: profiles[i].Id, InstanceCount: mostInstances})
		if ret == api.ERROR_NOT_SUPPORTED { // MIG mode went off meanwhile
			continue
		}
		if err := check("nvmlDeviceGetGpuInstances", ret); err != nil {
			return nil, err
		}
		for _, in := range found {
			info, ret := in.GetInfo()
			if wentAway(ret) {
				continue
			}
			if err := check("nvmlGpuInstanceGetInfo", ret); err != nil {
				return nil, err
			}
			inside, err := computeInstancesOf(in)
			if wentAway(codeOf(err)) {
				continue
			}
			if err != nil {
				return nil, err
			}
			instances = append(instances, machine.GPUInstance{
				ID: int(info.Id), ProfileID: int(info.ProfileId),
				Placement:        machine.Placement{Start: int(info.Placement.Start), Size: int(info.Placement.Size)},
				ComputeInstances: inside,
			})
		}
	}
	slices.SortFunc(instances, func(a, b machine.GPUInstance) int {
		return cmp.Or(cmp.Compare(a.Placement.Start, b.Placement.Start), cmp.Compare(a.ID, b.ID))
	})
	return instances, nameAll(d, instances)
}

// nameAll gives compute instances their UUIDs. One that is no MIG device any more is
// left out.
func nameAll(d api.Device, instances []machine.GPUInstance) error {
	if len(instances) == 0 {
		return nil
	}
	uuids, err := uuidsOf(d)
	if err != nil {
		return err
	}
	for i := range instances {
		in := &instances[i]
		for j := range in.ComputeInstances {
			in.ComputeInstances[j].UUID = uuids[place{in.ID, in.ComputeInstances[j].ID}]
		}
		in.ComputeInstances = slices.DeleteFunc(in.ComputeInstances, func(c machine.ComputeInstance) bool { return c.UUID == "" })
	}
	return nil
}

// wentAway is what NVML answers about an instance that somebody has destroyed.
func wentAway(ret api.Return) bool {
	return ret == api.ERROR_INVALID_ARGUMENT || ret == api.ERROR_NOT_FOUND
}

// computeInstancesOf reads those of one GPU instance, without UUIDs.
func computeInstancesOf(in api.GpuInstance) ([]machine.ComputeInstance, error) {
	profiles, err := computeProfilesOf(in)
	if err != nil {
		return nil, err
	}
	var instances []machine.ComputeInstance
	for _, profile := range profiles {
		profile.InstanceCount = mostInstances
		found, ret := in.GetComputeInstances(&profile)
		if err := check("nvmlGpuInstanceGetComputeInstances", ret); err != nil {
			return nil, err
		}
		for _, ci := range found {
			info, ret := ci.GetInfo()
			if wentAway(ret) {
				continue
			}
			if err := check("nvmlComputeInstanceGetInfo", ret); err != nil {
				return nil, err
			}
			instances = append(instances, machine.ComputeInstance{ID: int(info.Id), ComputeSlices: int(profile.SliceCount)})
		}
	}
	slices.SortFunc(instances, func(a, b machine.ComputeInstance) int { return cmp.Compare(a.ID, b.ID) })
	return instances, nil
}

// computeProfilesOf lists how compute instances can be made in a GPU instance.
func computeProfilesOf(in api.GpuInstance) ([]api.ComputeInstanceProfileInfo, error) {
	var profiles []api.ComputeInstanceProfileInfo
	for number := range profileNumbers {
		info, ret := in.GetComputeInstanceProfileInfo(number, api.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		switch {
		case ret == api.SUCCESS:
			profiles = append(profiles, info)
		case ret == api.ERROR_NOT_SUPPORTED:
		case ret == api.ERROR_INVALID_ARGUMENT && number > 0: // the end; at 0 the GPU instance is not there
			return profiles, nil
		default:
			return nil, check("nvmlGpuInstanceGetComputeInstanceProfileInfo", ret)
		}
	}
	return profiles, nil
}

// uuidsOf are the UUIDs of the GPU's MIG devices.
func uuidsOf(d api.Device) (map[place]string, error) {
	most, ret := d.GetMaxMigDeviceCount()
	if err := check("nvmlDeviceGetMaxMigDeviceCount", ret); err != nil {
		return nil, err
	}
	uuids := map[place]string{}
	for index := range most { // with gaps
		at, uuid, err := migDevice(d, index)
		if code := codeOf(err); wentAway(code) || code == api.ERROR_NOT_SUPPORTED {
			continue
		}
		if err != nil {
			return nil, err
		}
		uuids[at] = uuid
	}
	return uuids, nil
}

func migDevice(d api.Device, index int) (at place, uuid string, err error) {
	m, ret := d.GetMigDeviceHandleByIndex(index)
	if err := check("nvmlDeviceGetMigDeviceHandleByIndex", ret); err != nil {
		return at, "", err
	}
	if at.gpuInstance, ret = m.GetGpuInstanceId(); ret != api.SUCCESS {
		return at, "", check("nvmlDeviceGetGpuInstanceId", ret)
	}
	if at.computeInstance, ret = m.GetComputeInstanceId(); ret != api.SUCCESS {
		return at, "", check("nvmlDeviceGetComputeInstanceId", ret)
	}
	uuid, ret = m.GetUUID()
	return at, uuid, check("nvmlDeviceGetUUID", ret)
}
