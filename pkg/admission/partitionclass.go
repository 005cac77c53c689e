package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/admission/fleet"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// beyondAll is more memory than any GPU has that there is or is announced. Who writes
// more has the wrong unit.
var beyondAll = resource.MustParse("4Ti")

// slicesOfPartitions are how many compute slices a partition can have (nvml.h,
// NVML_GPU_INSTANCE_PROFILE_*).
var slicesOfPartitions = []int{1, 2, 3, 4, 6, 7, 8}

// PartitionClass checks a class: all that its schema says, and what that cannot say.
func (c *Checker) PartitionClass(p *v1alpha1.PartitionClass) Findings {
	var f Findings
	compiled, err := class.Compile(p)
	if err != nil {
		f.Refused = append(f.Refused, fmt.Sprintf("%.1000v", err))
		return f
	}
	spec := field.NewPath("spec")
	if profile := profileOf(&p.Spec.Shape); profile != "" {
		c.profile(spec.Child("shape", "mig", "profile"), profile, &f)
	}
	c.hardware(spec.Child("hardware"), compiled, &p.Spec.Hardware, &f)
	for _, m := range memoriesOf(&p.Spec, spec) {
		c.memory(m.path, m.wanted, &f)
	}
	if name := p.Spec.ExtendedResourceName; name != "" {
		if other := c.Classes.serving(name, p); other != "" {
			f.warn(spec.Child("extendedResourceName"), fmt.Sprintf("%s is DeviceClass %s's already, which keeps it, so that Pods get no devices of this class by it: use another name", name, other))
		}
	}
	if known := c.Classes.get(p.Name); known != nil && !known.owned {
		f.warn(field.NewPath("metadata", "name"), fmt.Sprintf("there is a DeviceClass %s that is not Dovetail's, and it stays as it is: use another name, or delete it", p.Name))
	}
	return f
}

// profile refuses what no GPU has, and warns of a profile with more memory than any GPU of
// the cluster, and, where nodes publish all partitions that there can be, of one that is not
// among them. Its name is readable, or the class would not be valid.
func (c *Checker) profile(path *field.Path, profile string, f *Findings) {
	n, gigabytes, _ := profileSize(profile)
	if !slices.Contains(slicesOfPartitions, n) {
		f.refuse(path, fmt.Sprintf("%s: no GPU has partitions of %d compute slices: dovetail-node inventory --profiles lists what a node has", profile, n))
		return
	}
	if memory := gibs(gigabytes); memory.Cmp(beyondAll) > 0 {
		f.refuse(path, fmt.Sprintf("%s: no GPU has partitions of %d GB: dovetail-node inventory --profiles lists what a node has", profile, gigabytes))
		return
	}
	// The name rounds up, by as much as a twentieth of what is left beside the driver's.
	least := gibs(gigabytes)
	least.Set(least.Value() / 20 * 19)
	if nearest, ok := c.tooLarge(least); ok {
		f.warn(path, fmt.Sprintf("%s has more memory than any GPU of this cluster; the nearest is %s", profile, nearest))
		return
	}
	partitions := ofKind(c.Fleet.Models(), machine.KindMIG)
	if len(partitions) > 0 && !c.Classes.choosePartitions() && !offers(partitions, profile) {
		f.warn(path, noProfile(partitions, profile))
	}
}

// hardware warns of products and architectures that nothing in the cluster has, with those
// that there are. Of a cluster without GPUs, or for NICs without NICs, it says nothing.
func (c *Checker) hardware(path *field.Path, class *class.Class, wanted *v1alpha1.Selection, f *Findings) {
	product, what := "model", "NIC"
	if class.Kind.HasGPU() {
		product, what = "productName", "GPU"
	}
	names, architectures := map[string]bool{}, map[string]bool{}
	for _, m := range c.Fleet.Models() {
		if m.Kind().HasGPU() == class.Kind.HasGPU() {
			names[m.Text(product)], architectures[m.Text("architecture")] = true, true
		}
	}
	delete(names, "") // unknown
	delete(architectures, "")
	known := slices.Sorted(maps.Keys(names))
	if len(known) > 0 && !slices.ContainsFunc(known, class.NamesProduct) {
		f.warn(path.Child("products"), fmt.Sprintf("%s matches no %s of this cluster, of which there are %s: a pattern is for the whole name, with * for any characters",
			strings.Join(wanted.Products, ", "), what, strings.Join(known, ", ")))
	}
	known = slices.Sorted(maps.Keys(architectures))
	if isKnown := func(a string) bool { return architectures[a] }; len(known) > 0 && len(wanted.Architectures) > 0 && !slices.ContainsFunc(wanted.Architectures, isKnown) {
		f.warn(path.Child("architectures"), fmt.Sprintf("no %s of this cluster is of %s: there are %s", what, strings.Join(wanted.Architectures, " or "), strings.Join(known, ", ")))
	}
}

func gibs(n int) resource.Quantity {
	return *resource.NewQuantity(int64(n)<<30, resource.BinarySI)
}

// memory warns of more than a GPU of the cluster has. Which partitions there are says
// nothing here: nodes publish those that classes ask for.
func (c *Checker) memory(path *field.Path, wanted resource.Quantity, f *Findings) {
	if wanted.Cmp(beyondAll) > 0 {
		f.refuse(path, fmt.Sprintf("%s is more than any GPU has: want %s at most", wanted.String(), beyondAll.String()))
		return
	}
	if nearest, ok := c.tooLarge(wanted); ok {
		f.warn(path, fmt.Sprintf("%s fits no GPU of this cluster; the nearest is %s", wanted.String(), nearest))
	}
}

// tooLarge says whether no GPU of the cluster has so much memory, and which has the most.
// Of a cluster without GPUs it says nothing. A GPU that is published in partitions alone
// counts by the largest.
func (c *Checker) tooLarge(wanted resource.Quantity) (nearest string, ok bool) {
	gpus := slices.DeleteFunc(slices.Clone(c.Fleet.Models()), func(m *fleet.Model) bool { return !m.Kind().HasGPU() })
	largest := most(gpus, "memory")
	if largest == nil || enough(gpus, "memory", wanted) != nil {
		return "", false
	}
	if whole := most(ofKind(gpus, machine.KindGPU), "memory"); whole != nil {
		largest = whole
	}
	return describe(largest, "memory"), true
}

func profileOf(s *v1alpha1.Shape) string {
	if s.MIG == nil {
		return ""
	}
	return s.MIG.Profile
}

// memoryWanted of a class, and where it stands.
type memoryWanted struct {
	path   *field.Path
	wanted resource.Quantity
}

func memoriesOf(spec *v1alpha1.PartitionClassSpec, path *field.Path) []memoryWanted {
	var found []memoryWanted
	add := func(q *resource.Quantity, names ...string) {
		if q != nil {
			found = append(found, memoryWanted{path.Child(names[0], names[1:]...), *q})
		}
	}
	add(spec.Hardware.MinMemory, "hardware", "minMemory")
	switch s := &spec.Shape; {
	case s.MIG != nil:
		add(s.MIG.Memory, "shape", "mig", "memory")
	case s.MPS != nil:
		add(s.MPS.Memory, "shape", "mps", "memory")
	case s.TimeSlice != nil:
		add(s.TimeSlice.Memory, "shape", "timeSlice", "memory")
	}
	return found
}

// serving names the DeviceClass that serves an extended resource and keeps it from a class;
// empty where none does. A retired class's gives it up to one that is not, and of others
// that want what the class has already its status tells.
func (c *Classes) serving(extendedResource string, p *v1alpha1.PartitionClass) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var names []string
	for name, known := range c.byName {
		switch {
		case known.extendedResource != extendedResource:
		case name == p.Name && known.owned:
			return ""
		case name == p.Name || known.retired && ptr.Deref(p.Spec.Published, true):
		default:
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

// choosePartitions says whether nodes may publish some partitions only, since there is a
// PartitionClass for some.
func (c *Classes) choosePartitions() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, known := range c.byName {
		if known.owned && known.selectors.Kind() == machine.KindMIG {
			return true
		}
	}
	return false
}

// isOwned says whether a DeviceClass was made for a PartitionClass.
func isOwned(dc *resourceapi.DeviceClass) bool {
	for _, o := range dc.OwnerReferences {
		if o.Kind == v1alpha1.PartitionClassKind && o.APIVersion == v1alpha1.GroupVersion.String() {
			return true
		}
	}
	return false
}
