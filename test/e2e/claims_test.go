package e2e

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/dovetail-dra/dovetail/test/harness"
)

type claimTest struct {
	name     string
	manifest string
	// do creates Pods and looks at what they were given; each Pod has verified
	// what it holds.
	do func(e *env)
}

// claimTests are the claims that must work, each beside the others: the scheduler
// has them wait for each other where GPUs run short.
var claimTests = []claimTest{
	{"one GPU", template("one", gpuRequest), func(e *env) {
		e.pod("train", fromTemplate("one"))
		e.count(e.verify("train"), 1)
		e.told("train")
	}},
	{"two GPUs in one claim", template("two", "{deviceClassName: gpu.dovetail.dev, count: 2}"), func(e *env) {
		e.pod("train", fromTemplate("two"))
		e.count(e.verify("train"), 2)
	}},
	{"shared by two containers", template("one", gpuRequest), func(e *env) {
		e.pod("pair", containers("main", "second"), fromTemplate("one"))
		e.count(e.verify("pair"), 1)
	}},
	{"for one container of two", template("one", gpuRequest), func(e *env) {
		e.pod("pair", containers("main", "second"), fromTemplate("one"), only("second", "", "one"))
		e.count(e.verify("pair"), 1)
	}},
	{"a GPU for each container", twoRequests, func(e *env) {
		e.pod("pair", containers("main", "second"), fromTemplate("two"), only("main", "a", "two"), only("second", "b", "two"))
		e.count(e.verify("pair"), 2)
	}},
	{"shared by two Pods", sharedClaim, func(e *env) {
		e.pod("first", fromClaim("shared"))
		first := e.verify("first")
		e.pod("second", fromClaim("shared"))
		second := e.verify("second")
		e.count(first, 1)
		e.count(second, 1)
		if first[0].Name != second[0].Name {
			e.Errorf("the Pods share a claim, but hold %s and %s", first[0].Name, second[0].Name)
		}
		// The one that stays keeps the GPU.
		e.gone("first")
		e.verify("second")
	}},
	{"first available", firstAvailable, func(e *env) {
		e.pod("train", fromTemplate("best"))
		devices := e.verify("train")
		e.count(devices, 1)
		e.attribute(devices[0], "productName", "NVIDIA L4")
	}},
	{"by product", selecting(`device.attributes["dovetail.dev"].productName.startsWith("NVIDIA A100")`), func(e *env) {
		e.pod("train", fromTemplate("one"))
		e.attribute(e.verify("train")[0], "architecture", "Ampere")
	}},
	{"by memory", selecting(`device.capacity["dovetail.dev"].memory.compareTo(quantity("70Gi")) >= 0`), func(e *env) {
		e.pod("train", fromTemplate("one"))
		e.attribute(e.verify("train")[0], "productName", "NVIDIA H100 80GB HBM3")
	}},
	{"by compute capability", selecting(`device.attributes["dovetail.dev"].cudaComputeCapability.compareTo(semver("9.0.0")) < 0 && device.attributes["dovetail.dev"].cudaComputeCapability.isGreaterThan(semver("8.0.0"))`), func(e *env) {
		e.pod("train", fromTemplate("one"))
		e.attribute(e.verify("train")[0], "productName", "NVIDIA L4")
	}},
	{"extended resource", "", func(e *env) {
		e.pod("old", limits("nvidia.com/gpu", 2))
		devices := e.verify("old")
		e.count(devices, 2)
		for _, d := range devices {
			e.attribute(d, "type", "gpu")
		}
	}},
	{"ExclusiveProcess", exclusive("one", ""), func(e *env) {
		e.pod("train", fromTemplate("one"))
		e.count(e.verify("train"), 1)
	}},
	{"four GPUs of one NUMA node", sameNUMA, func(e *env) {
		e.pod("train", fromTemplate("four"))
		devices := e.verify("train")
		e.count(devices, 4)
		for _, d := range devices {
			if a, b := numaNode(devices[0]), numaNode(d); a != b {
				e.Errorf("%s is on NUMA node %d, %s on %d", devices[0].Name, a, d.Name, b)
			}
		}
	}},
}

func TestClaims(t *testing.T) { sideBySide(t, nil, claimTests) }

// sideBySide runs tests at once, each in a namespace of its own with these labels.
func sideBySide(t *testing.T, labels map[string]string, tests []claimTest) {
	t.Cleanup(func() { agree(t) })
	t.Run("side by side", func(t *testing.T) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				e := start(t, labels)
				e.apply(test.manifest)
				test.do(e)
			})
		}
	})
}

// TestAllGPUs: 8 Pods have 8 GPUs, a ninth waits for one of them to leave.
func TestAllGPUs(t *testing.T) {
	e := alone(t)
	e.apply(template("one", gpuRequest))
	names := []string{}
	for i := range machines[node1].gpus {
		names = append(names, fmt.Sprintf("pod-%d", i))
		e.pod(names[i], on(node1), fromTemplate("one"))
	}
	held := map[string]string{}
	for _, name := range names {
		devices := e.verify(name)
		e.count(devices, 1)
		if other, ok := held[devices[0].Name]; ok {
			e.Errorf("%s is held by %s and %s", devices[0].Name, other, name)
		}
		held[devices[0].Name] = name
	}
	e.pod("ninth", on(node1), fromTemplate("one"))
	e.event("ninth", "FailedScheduling", "cannot allocate all claims")
	e.gone(names[3])
	devices := e.verify("ninth")
	if held[devices[0].Name] != names[3] {
		e.Errorf("the ninth Pod holds %s, want the one that %s has left", devices[0].Name, names[3])
	}
}

// told waits until the claim's status says of its devices that they are ready.
func (e *env) told(pod string) {
	e.Helper()
	claims := harness.Set{Client: e.Kube.ResourceV1().RESTClient(), Resource: "resourceclaims", Namespace: e.namespace}
	name := e.claimOfPod(pod).Name
	_, err := harness.WaitOne(e.ctx, claims, name, "the status of claim "+name, func(c *resourceapi.ResourceClaim) (bool, error) {
		return c != nil && len(c.Status.Devices) == 1 && meta.IsStatusConditionTrue(c.Status.Devices[0].Conditions, "Ready"), nil
	})
	e.must(err)
}

func (e *env) count(devices []resourceapi.Device, want int) {
	e.Helper()
	if len(devices) != want {
		e.Fatalf("got %d devices, want %d", len(devices), want)
	}
}

// attribute of a device, a string.
func (e *env) attribute(d resourceapi.Device, name resourceapi.QualifiedName, want string) {
	e.Helper()
	if got := d.Attributes[name].StringValue; got == nil || *got != want {
		e.Errorf("%s: %s is %v, want %q", d.Name, name, d.Attributes[name], want)
	}
}

func numaNode(d resourceapi.Device) int64 {
	return *d.Attributes["resource.kubernetes.io/numaNode"].IntValue
}
