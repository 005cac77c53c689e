package v1alpha1

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Config is what parameters are: *GPUConfig, *NICConfig or *PairConfig.
type Config interface {
	runtime.Object
	// Kind is the kind's name, also where the object does not say it.
	Kind() string
	// Validate says what is wrong with the configuration: field, value, and what
	// would be right.
	Validate() field.ErrorList

	// merge sets each field that over, of the same kind, sets.
	merge(over Config)
	// locks are the fields that are locked.
	locks() *[]Field
	// groups are the settings, by what stands before their names in Field.
	groups() map[string]any
}

// New returns an empty configuration of a kind; nil for a kind that does not exist.
func New(kind string) Config {
	switch kind {
	case GPUConfigKind:
		return &GPUConfig{}
	case NICConfigKind:
		return &NICConfig{}
	case PairConfigKind:
		return &PairConfig{}
	}
	return nil
}

// Merge sets in c each field that over sets. A choice between fields drops what was
// chosen before. An error says that over is of another kind.
func Merge(c, over Config) error {
	if c.Kind() != over.Kind() {
		return fmt.Errorf("kind: %s, but these devices are configured by a %s", over.Kind(), c.Kind())
	}
	c.merge(over)
	locked := c.locks()
	*locked = append(slices.Clone(*locked), *over.locks()...)
	return nil
}

// Override is Merge for a claim's configuration over its class's: what the class has
// locked the claim cannot set, and it cannot lock anything itself.
func Override(c, over Config) error {
	var errs field.ErrorList
	if len(*over.locks()) > 0 {
		errs = append(errs, field.Forbidden(field.NewPath("locked"), "only a DeviceClass can lock fields: remove it from the claim"))
	}
	locked := *c.locks()
	for _, f := range setIn(over) {
		if slices.Contains(locked, f) {
			errs = append(errs, field.Forbidden(field.NewPath(string(f)), "the DeviceClass has locked it: remove it from the claim, or use another class"))
		}
	}
	if err := errs.ToAggregate(); err != nil {
		return err
	}
	return Merge(c, over)
}

// setIn are the fields that a configuration sets, in their order.
func setIn(c Config) []Field {
	var fields []Field
	for prefix, settings := range c.groups() {
		encoded, err := json.Marshal(settings)
		if err != nil {
			continue // cannot be: it was decoded
		}
		var by map[string]json.RawMessage
		if err := json.Unmarshal(encoded, &by); err != nil {
			continue // likewise
		}
		for name := range by {
			fields = append(fields, Field(prefix+name))
		}
	}
	slices.Sort(fields)
	return fields
}

// Kind implements Config.
func (c *GPUConfig) Kind() string { return GPUConfigKind }

// Kind implements Config.
func (c *NICConfig) Kind() string { return NICConfigKind }

// Kind implements Config.
func (c *PairConfig) Kind() string { return PairConfigKind }

func (c *GPUConfig) merge(over Config) { c.GPUSettings.merge(&over.(*GPUConfig).GPUSettings) }

func (c *NICConfig) merge(over Config) { c.NICSettings.merge(&over.(*NICConfig).NICSettings) }

func (c *PairConfig) merge(over Config) {
	c.GPU.merge(&over.(*PairConfig).GPU)
	c.NIC.merge(&over.(*PairConfig).NIC)
}

func (c *GPUConfig) locks() *[]Field { return &c.Locked }

func (c *NICConfig) locks() *[]Field { return &c.Locked }

func (c *PairConfig) locks() *[]Field { return &c.Locked }

func (c *GPUConfig) groups() map[string]any { return map[string]any{"": c.GPUSettings} }

func (c *NICConfig) groups() map[string]any { return map[string]any{"": c.NICSettings} }

func (c *PairConfig) groups() map[string]any { return map[string]any{"gpu.": c.GPU, "nic.": c.NIC} }

// DeepCopyObject implements runtime.Object.
func (c *GPUConfig) DeepCopyObject() runtime.Object { return copyOf(c) }

// DeepCopyObject implements runtime.Object.
func (c *NICConfig) DeepCopyObject() runtime.Object { return copyOf(c) }

// DeepCopyObject implements runtime.Object.
func (c *PairConfig) DeepCopyObject() runtime.Object { return copyOf(c) }

// copyOf shares values, which nobody changes, but no structure.
func copyOf[T any, C interface {
	*T
	Config
}](c C) runtime.Object {
	if c == nil {
		return nil
	}
	out := C(new(T))
	out.GetObjectKind().SetGroupVersionKind(c.GetObjectKind().GroupVersionKind())
	out.merge(c)
	*out.locks() = slices.Clone(*c.locks())
	return out
}
