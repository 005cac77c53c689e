package admission

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

func TestPartitionClasses(t *testing.T) {
	for name, test := range map[string]struct {
		machines, class string
		refused, warned []string
	}{
		"good":                 {"dgx-h100", `{metadata: {name: ones}, spec: {shape: {mig: {profile: 1g.10gb}}}}`, nil, nil},
		"its own DeviceClass":  {"dgx-h100", `{metadata: {name: own}, spec: {extendedResourceName: example.com/own, shape: {gpu: {}}}}`, nil, nil},
		"two shapes":           {"dgx-h100", `{metadata: {name: x}, spec: {shape: {gpu: {}, nic: {}}}}`, []string{"spec.shape", "want exactly one"}, nil},
		"none":                 {"dgx-h100", `{metadata: {name: x}, spec: {shape: {}}}`, []string{"spec.shape", "want exactly one"}, nil},
		"a name that is none":  {"dgx-h100", `{metadata: {name: X}, spec: {shape: {gpu: {}}}}`, []string{"metadata.name", `"X"`, "all lower-case"}, nil},
		"Kubernetes' domain":   {"dgx-h100", `{metadata: {name: x}, spec: {extendedResourceName: kubernetes.io/gpu, shape: {gpu: {}}}}`, []string{"spec.extendedResourceName", "kubernetes.io"}, nil},
		"labels that are none": {"dgx-h100", `{metadata: {name: x}, spec: {hardware: {nodeSelector: {matchLabels: {"a b": c}}}, shape: {gpu: {}}}}`, []string{"spec.hardware.nodeSelector", "a b"}, nil},
		"a profile of nothing": {"dgx-h100", `{metadata: {name: x}, spec: {shape: {mig: {profile: 9g.10gb}}}}`, []string{"spec.shape.mig.profile: 9g.10gb", "9 compute slices", "inventory --profiles"}, nil},
		"a profile beyond all": {"dgx-h100", `{metadata: {name: x}, spec: {shape: {mig: {profile: 7g.9999gb}}}}`, []string{"spec.shape.mig.profile: 7g.9999gb", "9999 GB", "inventory --profiles"}, nil},
		"part of a product's name": {"dgx-h100 t4", `{metadata: {name: x}, spec: {shape: {gpu: {}}, hardware: {products: [H100, A100]}}}`, nil,
			[]string{"spec.hardware.products: H100, A100 matches no GPU of this cluster, of which there are NVIDIA H100 80GB HBM3, Tesla T4: a pattern is for the whole name, with * for any"}},
		"one product of two":     {"dgx-h100", `{metadata: {name: x}, spec: {shape: {gpu: {}}, hardware: {products: [H100, "*H100*"]}}}`, nil, nil},
		"a NIC's model":          {"dgx-h100", `{metadata: {name: x}, spec: {shape: {nic: {}}, hardware: {products: [ConnectX-7]}}}`, nil, []string{"spec.hardware.products: ConnectX-7 matches no NIC of this cluster, of which there are MT4129"}},
		"an architecture":        {"dgx-h100 t4", `{metadata: {name: x}, spec: {shape: {gpu: {}}, hardware: {architectures: [hopper]}}}`, nil, []string{"spec.hardware.architectures: no GPU of this cluster is of hopper: there are Hopper, Turing"}},
		"products of no cluster": {"", `{metadata: {name: x}, spec: {shape: {gpu: {}}, hardware: {products: [H100], architectures: [hopper]}}}`, nil, nil},
		"a profile of none here": {"dgx-h100", `{metadata: {name: x}, spec: {shape: {mig: {profile: 1g.11gb}}}}`, nil, []string{"spec.shape.mig.profile: no GPU of this cluster offers profile 1g.11gb now; the nearest is 1g.10gb (9.75Gi) on H100"}},
		"a profile without MIG":  {"t4", `{metadata: {name: x}, spec: {shape: {mig: {profile: 1g.11gb}}}}`, nil, nil},
		"all of a GPU":           {"dgx-h100", `{metadata: {name: x}, spec: {shape: {mig: {profile: 7g.80gb}}}}`, nil, nil},
		"all of a larger one":    {"dgx-h100", `{metadata: {name: x}, spec: {shape: {mig: {profile: 7g.141gb}}}}`, nil, []string{"spec.shape.mig.profile: 7g.141gb has more memory than any GPU of this cluster; the nearest is H100"}},
		"memory beyond all":      {"dgx-h100", `{metadata: {name: x}, spec: {shape: {mig: {memory: 10Pi}}}}`, []string{"spec.shape.mig.memory: 10Pi", "4Ti at most"}, nil},
		"minimum beyond all":     {"", `{metadata: {name: x}, spec: {hardware: {minMemory: 5Ti}, shape: {gpu: {}}}}`, []string{"spec.hardware.minMemory: 5Ti", "4Ti at most"}, nil},
		"more than the cluster":  {"t4 dgx-h100", `{metadata: {name: x}, spec: {shape: {mps: {memory: 100Gi}}}}`, nil, []string{"spec.shape.mps.memory: 100Gi fits no GPU of this cluster; the nearest is H100"}},
		"turns":                  {"t4", `{metadata: {name: x}, spec: {shape: {timeSlice: {memory: 100Gi}}}}`, nil, []string{"spec.shape.timeSlice.memory: 100Gi fits no GPU of this cluster; the nearest is Tesla T4 ("}},
		"a cluster without GPUs": {"", `{metadata: {name: x}, spec: {shape: {mps: {memory: 100Gi}}}}`, nil, nil},
		"another's resource":     {"dgx-h100", `{metadata: {name: x}, spec: {extendedResourceName: example.com/own, shape: {gpu: {}}}}`, nil, []string{"spec.extendedResourceName: example.com/own is DeviceClass own's already"}},
		"a retired one's":        {"dgx-h100", `{metadata: {name: x}, spec: {extendedResourceName: example.com/old, shape: {gpu: {}}}}`, nil, nil},
		"retired as well":        {"dgx-h100", `{metadata: {name: x}, spec: {extendedResourceName: example.com/old, shape: {gpu: {}}, published: false}}`, nil, []string{"example.com/old is DeviceClass old's already"}},
		"another's name":         {"dgx-h100", `{metadata: {name: ones-own}, spec: {shape: {gpu: {}}}}`, nil, []string{"metadata.name: there is a DeviceClass ones-own that is not Dovetail's"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := checker(t, test.machines)
			c.Classes.Set(&resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "ones-own"}})
			c.Classes.Set(&resourceapi.DeviceClass{
				ObjectMeta: metav1.ObjectMeta{Name: "own", OwnerReferences: []metav1.OwnerReference{{APIVersion: "dovetail.dev/v1alpha1", Kind: "PartitionClass", Name: "own"}}},
				Spec:       resourceapi.DeviceClassSpec{ExtendedResourceName: ptr.To("example.com/own")},
			})
			retired := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "old", OwnerReferences: []metav1.OwnerReference{{APIVersion: "dovetail.dev/v1alpha1", Kind: "PartitionClass", Name: "old"}}}}
			retired.Spec.ExtendedResourceName = ptr.To("example.com/old")
			retired.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: "false"}}}
			c.Classes.Set(retired)
			// Somebody else serves own's, too, of which own's status tells.
			c.Classes.Set(&resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "too"}, Spec: resourceapi.DeviceClassSpec{ExtendedResourceName: ptr.To("example.com/own")}})
			c.Classes.Delete("ones")
			var class v1alpha1.PartitionClass
			if err := yaml.UnmarshalStrict([]byte(test.class), &class); err != nil {
				t.Fatal(err)
			}
			f := c.PartitionClass(&class)
			check(t, "refused", f.Refused, test.refused)
			check(t, "warnings", f.Warnings, test.warned)
		})
	}
}

// Where a class is for some partitions nodes publish no others, so that nothing can be said
// of those.
func TestProfileThatNobodyAskedForYet(t *testing.T) {
	c := checker(t, "dgx-h100")
	var class v1alpha1.PartitionClass
	if err := yaml.UnmarshalStrict([]byte(`{metadata: {name: x}, spec: {shape: {mig: {profile: 1g.11gb}}}}`), &class); err != nil {
		t.Fatal(err)
	}
	first := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "first", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "dovetail.dev/v1alpha1", Kind: "PartitionClass", Name: "first"},
	}}}
	for expression, warnings := range map[string]int{
		`device.driver == "dovetail.dev" && device.attributes["dovetail.dev"].type == "mig"`: 0,
		`device.driver == "dovetail.dev" && device.attributes["dovetail.dev"].type == "gpu"`: 1,
		`false`: 1, // it is retired
	} {
		first.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
		c.Classes.Set(first)
		if f := c.PartitionClass(&class); len(f.Refused) != 0 || len(f.Warnings) != warnings {
			t.Errorf("beside a class for %s: %+v", expression, f)
		}
	}
}
