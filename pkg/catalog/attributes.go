package catalog

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

type attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute

// The standard attributes, as k8s.io/dynamic-resource-allocation/deviceattribute
// names them. Taken as text because that package reads sysfs on import's behalf.
const (
	pciBusID = "resource.kubernetes.io/pciBusID"
	pcieRoot = "resource.kubernetes.io/pcieRoot"
	numaNode = "resource.kubernetes.io/numaNode"
)

// Attributes of a device. Every device of one kind has the same names: what is
// unknown has an explicit value ("", 0, -1, 0.0.0, false), since a selector that
// reads a missing attribute stops the Pod's scheduling. A nil offer is everything.
func Attributes(m machine.Machine, d machine.Device, offer Offer) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	attributes := attributes{}
	if d.Kind.HasGPU() {
		attributes = gpuAttributes(m, d.GPU)
	}
	if d.Kind.HasNIC() {
		addNIC(attributes, m, d)
	}
	attributes["type"] = text(string(d.Kind))
	if d.Kind != machine.KindMonitor { // which no class is for
		attributes[AttributeClassConditions] = text(orEverything(offer).Conditions(d))
	}
	if d.Partition != nil {
		addPartition(attributes, d)
	}
	if d.Kind.SharesGPU() {
		addShare(attributes, m, d)
	}
	return attributes
}

func gpuAttributes(m machine.Machine, gpu *machine.GPU) attributes {
	return attributes{
		"uuid":                  text(gpu.UUID),
		"productName":           text(gpu.ProductName),
		"brand":                 text(gpu.Brand),
		"architecture":          text(gpu.Architecture),
		"cudaComputeCapability": version(gpu.ComputeCapability.String()),
		"driverVersion":         version(m.Driver.Version),
		"driverVersionText":     text(m.Driver.Version),
		"cudaDriverVersion":     version(m.Driver.CUDA.String()),
		"index":                 number(gpu.Index),
		"eccEnabled":            boolean(gpu.ECCEnabled),
		"migEnabled":            boolean(gpu.MIG.Enabled),
		"nvlinkDomain":          text(gpu.NVLinkDomain),
		"pcieSwitch":            text(gpu.Location.Switch),
		pciBusID:                address(gpu.Address),
		pcieRoot:                text(gpu.Location.PCIeRoot),
		numaNode:                number(gpu.Location.NUMANode),
	}
}

// addPartition adds what a partition has beside its GPU's attributes. It has no
// UUID before it is made.
func addPartition(attributes attributes, d machine.Device) {
	p := d.Partition
	uuid := ""
	if p.Static() {
		uuid = p.Instance.ComputeInstances[0].UUID
	}
	attributes["uuid"] = text(uuid)
	attributes["parentUUID"] = text(d.GPU.UUID)
	attributes["profile"] = text(p.Profile.Name)
	attributes["placementStart"] = number(p.Placement.Start)
	attributes["placementSize"] = number(p.Placement.Size)
	attributes["nextSmallerMemory"] = number(int(d.GPU.MIG.NextSmallerMemory(p.Profile)))
	attributes["mediaExtensions"] = boolean(p.Profile.Media)
	attributes["static"] = boolean(p.Static())
}

// addShare adds what shares of a GPU have beside its attributes.
func addShare(attributes attributes, m machine.Machine, d machine.Device) {
	class := ""
	if d.Size != nil {
		class = d.Size.Name
	}
	attributes["partitionClass"] = text(class)
	attributes["memoryEnforcement"] = text(string(m.Enforces(d.GPU, d.Kind)))
}

// text is cut, on a rune's edge, to what the API takes; one long name must not
// cost the whole slice.
func text(s string) resourceapi.DeviceAttribute {
	if len(s) > resourceapi.DeviceAttributeMaxValueLength {
		s = s[:resourceapi.DeviceAttributeMaxValueLength]
		for !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
	}
	return resourceapi.DeviceAttribute{StringValue: ptr.To(s)}
}

// address of a device; empty where it is not known.
func address(a machine.Address) resourceapi.DeviceAttribute {
	if a == (machine.Address{}) {
		return text("")
	}
	return text(a.String())
}

func number(n int) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: ptr.To(int64(n))}
}

func boolean(b bool) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{BoolValue: ptr.To(b)}
}

// version makes a semantic version of up to three numbers ("550.163.01" is
// 550.163.1, "9.0" is 9.0.0); 0.0.0 where s is none.
func version(s string) resourceapi.DeviceAttribute {
	var numbers [3]uint64
	parts := strings.Split(s, ".")
	valid := len(parts) <= len(numbers)
	for i := 0; valid && i < len(parts); i++ {
		var err error
		numbers[i], err = strconv.ParseUint(parts[i], 10, 63)
		valid = err == nil
	}
	if !valid {
		numbers = [3]uint64{}
	}
	return resourceapi.DeviceAttribute{VersionValue: ptr.To(fmt.Sprintf("%d.%d.%d", numbers[0], numbers[1], numbers[2]))}
}
