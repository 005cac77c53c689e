package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metadatav1beta1 "k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"

	"github.com/dovetail-dra/dovetail/test/harness"
	"github.com/dovetail-dra/dovetail/test/harness/seen"
)

// verify lets each container of a Pod tell what it holds, and compares: with what
// was allocated to it, what is published of that, and what the hardware is. It returns the devices,
// as they are published, in the order of the allocation.
func (e *env) verify(name string) []resourceapi.Device {
	e.Helper()
	pod := e.ready(name)
	var devices []resourceapi.Device
	for _, container := range pod.Spec.Containers {
		want := e.expected(pod, container)
		for _, d := range want.devices {
			if !slices.ContainsFunc(devices, func(known resourceapi.Device) bool { return known.Name == d.Name }) {
				devices = append(devices, d)
			}
		}
		report, err := e.Seen(e.ctx, e.namespace, name, container.Name)
		e.must(err)
		for _, difference := range want.compare(report) {
			e.Errorf("Pod %s, container %s: %s", name, container.Name, difference)
		}
	}
	return devices
}

// expectation is what a container should see.
type expectation struct {
	devices []resourceapi.Device
	env     map[string]string
	minors  []int
}

// expected derives, from the API and the hardware, what a container should see.
func (e *env) expected(pod *corev1.Pod, container corev1.Container) expectation {
	e.Helper()
	slices_, err := e.WaitSlices(e.ctx, pod.Spec.NodeName, "a whole pool", func([]*resourceapi.ResourceSlice) bool { return true })
	e.must(err)
	published := harness.Devices(slices_)
	state, err := e.Machine(e.ctx, pod.Spec.NodeName)
	e.must(err)
	minors := map[string]int{}
	for _, gpu := range state.Spec.GPUs {
		minors[gpu.UUID] = gpu.Minor
	}
	want := expectation{env: map[string]string{}}
	results, err := e.Allocated(e.ctx, pod, container)
	e.must(err)
	for _, r := range results {
		device, ok := published[r.Device]
		if !ok {
			e.Fatalf("Pod %s has device %s of pool %s, which %s does not publish", pod.Name, r.Device, r.Pool, pod.Spec.NodeName)
		}
		uuid := *device.Attributes["uuid"].StringValue
		want.devices = append(want.devices, device)
		want.env["DOVETAIL_"+strings.ToUpper(strings.ReplaceAll(r.Device, "-", "_"))] = uuid
		want.minors = append(want.minors, minors[uuid])
	}
	slices.Sort(want.minors)
	want.minors = slices.Compact(want.minors)
	return want
}

// compare says in which ways a container sees something else.
func (x expectation) compare(r *seen.Report) []string {
	var found []string
	differ := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if got := r.MayOpen(); !slices.Equal(got, x.minors) {
		differ("may open GPUs with minors %v, want %v; the kernel says %v", got, x.minors, r.Opened)
	}
	if len(x.devices) > 0 && r.Opened[seen.ControlMinor] == seen.Refused {
		differ("may not open the control node")
	}
	for _, minor := range x.minors {
		if node := fmt.Sprintf("/dev/nvidia%d", minor); !slices.Contains(r.Nodes, node) {
			differ("has no %s; it has %v", node, r.Nodes)
		}
	}
	if got := r.GPUs(); !maps.Equal(got, x.env) {
		differ("environment %v, want %v", got, x.env)
	}
	if got := r.Env["NVIDIA_VISIBLE_DEVICES"]; len(x.devices) > 0 && got != "void" {
		differ("NVIDIA_VISIBLE_DEVICES is %q, want void", got)
	}
	if len(x.devices) > 0 && len(r.Mounts) == 0 {
		differ("no file of the driver is mounted")
	}
	return append(found, x.compareMetadata(r)...)
}

// compareMetadata: the files have what the slices have.
func (x expectation) compareMetadata(r *seen.Report) []string {
	var found []string
	got := map[string]map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
	for path, content := range r.Metadata {
		var m metadatav1beta1.DeviceMetadata
		if err := json.NewDecoder(bytes.NewReader([]byte(content))).Decode(&m); err != nil {
			found = append(found, fmt.Sprintf("metadata file %s: %v", path, err))
			continue
		}
		for _, request := range m.Requests {
			for _, device := range request.Devices {
				got[device.Name] = device.Attributes
			}
		}
	}
	for _, device := range x.devices {
		attributes, ok := got[device.Name]
		switch {
		case !ok:
			found = append(found, fmt.Sprintf("no metadata of device %s in %v", device.Name, slices.Sorted(maps.Keys(r.Metadata))))
		case !apiequality.Semantic.DeepEqual(attributes, device.Attributes):
			found = append(found, fmt.Sprintf("metadata of device %s:\n%v\nis not what is published:\n%v", device.Name, attributes, device.Attributes))
		}
		delete(got, device.Name)
	}
	for name := range got {
		found = append(found, "metadata of a device that was not allocated: "+name)
	}
	return found
}
