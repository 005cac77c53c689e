package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metadatav1beta1 "k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/test/harness"
	"github.com/dovetail-dra/dovetail/test/harness/seen"
)

// catchUp is how long what is published may be of before: hardware is looked at once a
// second at most, and again after that only when it changes.
const catchUp = 15 * time.Second

// verify lets each container of a Pod tell what it holds, and compares: with what
// was allocated to it, what is published of that, and what the hardware is. It returns the devices,
// as they are published, in the order of the allocation.
func (e *env) verify(name string) []resourceapi.Device {
	e.Helper()
	pod := e.ready(name)
	var devices []resourceapi.Device
	for _, container := range pod.Spec.Containers {
		report, err := e.Seen(e.ctx, e.namespace, name, container.Name)
		e.must(err)
		want, differences := e.compared(pod, container, report)
		for _, difference := range differences {
			e.Errorf("Pod %s, container %s: %s", name, container.Name, difference)
		}
		for _, d := range want.devices {
			if !slices.ContainsFunc(devices, func(known resourceapi.Device) bool { return known.Name == d.Name }) {
				devices = append(devices, d)
			}
		}
	}
	return devices
}

// compared waits until what is published is what a container tells, and returns what it
// should see, and what is different still.
func (e *env) compared(pod *corev1.Pod, container corev1.Container, report *seen.Report) (want expectation, differences []string) {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.ctx, catchUp)
	defer cancel()
	_, err := e.WaitSlices(ctx, pod.Spec.NodeName, "what its Pods are told", func(published []*resourceapi.ResourceSlice) bool {
		want = e.expected(pod, container, harness.Devices(published))
		differences = want.compare(report)
		return len(differences) == 0
	})
	if len(differences) == 0 {
		e.must(err)
	}
	return want, differences
}

// expectation is what a container should see.
type expectation struct {
	// devices as they are published; partitions with the UUID that they were given.
	devices []resourceapi.Device
	env     map[string]string
	// minors of GPUs, and of MIG's capabilities.
	minors       []int
	capabilities []int
	nic          nicExpectation
}

// expected derives, from the API and the hardware, what a container should see.
func (e *env) expected(pod *corev1.Pod, container corev1.Container, published map[string]resourceapi.Device) expectation {
	e.Helper()
	state, err := e.Machine(e.ctx, pod.Spec.NodeName)
	e.must(err)
	want := expectation{env: map[string]string{}}
	results, err := e.Allocated(e.ctx, pod, container)
	e.must(err)
	for _, r := range results {
		device, ok := published[r.Device]
		if !ok {
			e.Fatalf("Pod %s has device %s of pool %s, which %s does not publish", pod.Name, r.Device, r.Pool, pod.Spec.NodeName)
		}
		if err := want.add(device, state); err != nil {
			e.Fatalf("Pod %s: %v", pod.Name, err)
		}
	}
	e.withNetwork(&want, pod, container, published, state)
	slices.Sort(want.minors)
	want.minors = slices.Compact(want.minors)
	slices.Sort(want.capabilities)
	want.capabilities = slices.Compact(want.capabilities)
	return want
}

// add adds a device, as the hardware has it.
func (x *expectation) add(device resourceapi.Device, state *simulator.State) error {
	kind := kindOf(device)
	if kind.HasNIC() {
		if err := x.addNIC(device, state); err != nil {
			return err
		}
	}
	if kind.HasGPU() {
		return x.addGPU(device, state)
	}
	x.devices = append(x.devices, device)
	return nil
}

func (x *expectation) addGPU(device resourceapi.Device, state *simulator.State) error {
	uuid := *device.Attributes["uuid"].StringValue
	name := uuid
	if parent := device.Attributes["parentUUID"].StringValue; parent != nil {
		name = *parent
	}
	gpu, err := state.Find(name)
	if err != nil {
		return err
	}
	if name != uuid {
		made, err := instanceOf(device, gpu)
		if err != nil {
			return err
		}
		ci := made.ComputeInstances[0]
		uuid = ci.UUID
		device = *device.DeepCopy()
		device.Attributes["uuid"] = resourceapi.DeviceAttribute{StringValue: &uuid}
		x.capabilities = append(x.capabilities, gpu.Capability(made.ID), gpu.Capability(made.ID, ci.ID))
	}
	if kindOf(device) == machine.KindMonitor {
		x.capabilities = append(x.capabilities, simulator.CapabilityMonitor)
	}
	x.devices = append(x.devices, device)
	x.env["DOVETAIL_"+strings.ToUpper(strings.ReplaceAll(device.Name, "-", "_"))] = uuid
	x.minors = append(x.minors, gpu.Spec.Minor)
	return nil
}

// instanceOf is the GPU instance that a partition's attributes describe. It must be
// spanned by one compute instance.
func instanceOf(device resourceapi.Device, gpu simulator.GPU) (*machine.GPUInstance, error) {
	start, profile := int(*device.Attributes["placementStart"].IntValue), *device.Attributes["profile"].StringValue
	for i := range gpu.Instances {
		in := &gpu.Instances[i]
		p, _ := gpu.Model.MIG.Profile(in.ProfileID)
		if in.Placement.Start != start || p.Name != profile {
			continue
		}
		if len(in.ComputeInstances) != 1 || in.ComputeInstances[0].ComputeSlices != p.ComputeSlices {
			return nil, fmt.Errorf("%s is not spanned by one compute instance: %+v", device.Name, in.ComputeInstances)
		}
		return in, nil
	}
	return nil, fmt.Errorf("%s does not exist; the GPU has %+v", device.Name, gpu.Instances)
}

// compare says in which ways a container sees something else.
func (x expectation) compare(r *seen.Report) []string {
	var found []string
	differ := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if got := r.MayOpen(); !slices.Equal(got, x.minors) {
		differ("may open GPUs with minors %v, want %v; the kernel says %v", got, x.minors, r.Opened)
	}
	if !slices.Equal(r.CapabilitiesOpened, x.capabilities) {
		differ("may open capabilities %v, want %v", r.CapabilitiesOpened, x.capabilities)
	}
	if got := slices.Sorted(maps.Values(r.Capabilities)); !slices.Equal(got, x.capabilities) {
		differ("has capability nodes %v, want %v", r.Capabilities, x.capabilities)
	}
	if len(x.minors) > 0 && r.Opened[seen.ControlMinor] == seen.Refused {
		differ("may not open the control node")
	}
	for _, minor := range x.minors {
		if node := fmt.Sprintf("/dev/nvidia%d", minor); !slices.Contains(r.Nodes, node) {
			differ("has no %s; it has %v", node, r.Nodes)
		}
	}
	if got := r.Devices(); !maps.Equal(got, x.env) {
		differ("environment %v, want %v", got, x.env)
	}
	if got := r.Env["NVIDIA_VISIBLE_DEVICES"]; len(x.minors) > 0 && got != "void" {
		differ("NVIDIA_VISIBLE_DEVICES is %q, want void", got)
	}
	if (len(x.minors) > 0) != (len(r.Mounts) > 0) {
		differ("of the driver's files are mounted: %v", r.Mounts)
	}
	found = append(found, x.compareNICs(r)...)
	return append(found, x.compareMetadata(r)...)
}

// compareMetadata: the files have what the slices have.
func (x expectation) compareMetadata(r *seen.Report) []string {
	var found []string
	got := map[string]metadatav1beta1.Device{}
	for path, content := range r.Metadata {
		var m metadatav1beta1.DeviceMetadata
		if err := json.NewDecoder(bytes.NewReader([]byte(content))).Decode(&m); err != nil {
			found = append(found, fmt.Sprintf("metadata file %s: %v", path, err))
			continue
		}
		for _, request := range m.Requests {
			for _, device := range request.Devices {
				got[device.Name] = device
			}
		}
	}
	for _, device := range x.devices {
		told, ok := got[device.Name]
		if x.nic.network[device.Name] == nil {
			// The host has it, and it goes on changing.
			told.Attributes, device.Attributes = lasting(told.Attributes), lasting(device.Attributes)
		}
		switch {
		case !ok:
			found = append(found, fmt.Sprintf("no metadata of device %s in %v", device.Name, slices.Sorted(maps.Keys(r.Metadata))))
		case !apiequality.Semantic.DeepEqual(told.Attributes, device.Attributes):
			found = append(found, fmt.Sprintf("metadata of device %s are not what is published: %s", device.Name, difference(told.Attributes, device.Attributes)))
		case !apiequality.Semantic.DeepEqual(told.NetworkData, x.nic.network[device.Name]):
			found = append(found, fmt.Sprintf("metadata of device %s has network data %+v, want %+v", device.Name, told.NetworkData, x.nic.network[device.Name]))
		}
		delete(got, device.Name)
	}
	for name := range got {
		found = append(found, "metadata of a device that was not allocated: "+name)
	}
	return found
}

// attributes of a device, in the API's types.
type attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute

// lasting are the attributes that do not come and go with a NIC's link.
func lasting(all attributes) attributes {
	kept := maps.Clone(all)
	delete(kept, "linkState")
	delete(kept, "gidIndex")
	return kept
}

// difference names the attributes that are not the same in both, with their values.
func difference(got, want attributes) string {
	var names []string
	for name, value := range want {
		if !apiequality.Semantic.DeepEqual(got[name], value) {
			names = append(names, string(name))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = fmt.Sprintf("%s is %s, want %s", name, written(got, name), written(want, name))
	}
	return strings.Join(names, "; ")
}

// written is an attribute's value as JSON.
func written(all attributes, name string) string {
	value, ok := all[resourceapi.QualifiedName(name)]
	if !ok {
		return "missing"
	}
	out, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
