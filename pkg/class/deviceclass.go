package class

import (
	"encoding/json"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
)

// DeviceClass is the spec of the DeviceClass that the cluster has for the class.
func (c *Class) DeviceClass() resourceapi.DeviceClassSpec {
	spec := resourceapi.DeviceClassSpec{
		Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: c.selector()}}},
	}
	if config := c.config(); config != nil {
		spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: catalog.DriverName, Parameters: encode(config)},
		}}}
	}
	if name := c.spec.ExtendedResourceName; name != "" {
		spec.ExtendedResourceName = ptr.To(name)
	}
	return spec
}

// IsRetired says of the spec of a DeviceClass that was made for a class whether the class
// is retired.
func IsRetired(spec *resourceapi.DeviceClassSpec) bool {
	return len(spec.Selectors) == 1 && spec.Selectors[0].CEL != nil && spec.Selectors[0].CEL.Expression == nothing
}

// config is what the class decides of its devices' configuration, which claims then
// cannot change; nil where it decides nothing.
func (c *Class) config() v1alpha1.Config {
	switch shape := &c.spec.Shape; {
	case shape.MPS != nil && shape.MPS.Enforcement != nil:
		return &v1alpha1.GPUConfig{
			TypeMeta:    kind(v1alpha1.GPUConfigKind),
			GPUSettings: v1alpha1.GPUSettings{Enforcement: shape.MPS.Enforcement},
			Locked:      []v1alpha1.Field{"enforcement"},
		}
	case shape.TimeSlice != nil && shape.TimeSlice.Interval != nil:
		return &v1alpha1.GPUConfig{
			TypeMeta:    kind(v1alpha1.GPUConfigKind),
			GPUSettings: v1alpha1.GPUSettings{Sharing: &v1alpha1.Sharing{TimeSlicing: &v1alpha1.TimeSlicing{Interval: shape.TimeSlice.Interval}}},
			Locked:      []v1alpha1.Field{"sharing"},
		}
	case shape.Pair != nil && shape.Pair.Lossless:
		return &v1alpha1.PairConfig{
			TypeMeta: kind(v1alpha1.PairConfigKind),
			NIC:      v1alpha1.NICSettings{RequireLossless: ptr.To(true)},
			Locked:   []v1alpha1.Field{"nic.requireLossless"},
		}
	case c.lossless():
		return &v1alpha1.NICConfig{
			TypeMeta:    kind(v1alpha1.NICConfigKind),
			NICSettings: v1alpha1.NICSettings{RequireLossless: ptr.To(true)},
			Locked:      []v1alpha1.Field{"requireLossless"},
		}
	}
	return nil
}

func kind(name string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: name}
}

// encode cannot fail: the types have nothing that JSON does not.
func encode(config v1alpha1.Config) runtime.RawExtension {
	raw, err := json.Marshal(config)
	if err != nil {
		panic(err)
	}
	return runtime.RawExtension{Raw: raw}
}
