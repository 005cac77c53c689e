package admission

import (
	"context"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/pkg/admission/fleet"
	"github.com/dovetail-dra/dovetail/pkg/admission/fleet/fleettest"
)

// classes are those of the chart, and some that administrators have made.
const classes = `
gpu.dovetail.dev:
  selectors: [{cel: {expression: 'device.driver == "dovetail.dev" && device.attributes["dovetail.dev"].type == "gpu"'}}]
mig.dovetail.dev:
  selectors: [{cel: {expression: 'device.driver == "dovetail.dev" && device.attributes["dovetail.dev"].type == "mig"'}}]
mps.dovetail.dev:
  selectors: [{cel: {expression: 'device.driver == "dovetail.dev" && device.attributes["dovetail.dev"].type == "mps" && device.attributes["dovetail.dev"].partitionClass == ""'}}]
timeslice.dovetail.dev:
  selectors: [{cel: {expression: 'device.driver == "dovetail.dev" && device.attributes["dovetail.dev"].type == "timeslice" && device.attributes["dovetail.dev"].partitionClass == ""'}}]
rdma.dovetail.dev:
  selectors: [{cel: {expression: 'device.driver == "dovetail.dev" && device.attributes["dovetail.dev"].type == "rdma"'}}]
monitor.dovetail.dev:
  selectors: [{cel: {expression: 'device.driver == "dovetail.dev" && device.attributes["dovetail.dev"].type == "monitor"'}}]
small:
  selectors: [{cel: {expression: 'device.driver == "dovetail.dev" && device.attributes["dovetail.dev"].type == "mps" && device.attributes["dovetail.dev"].partitionClass == "small"'}}]
  config: [{opaque: {driver: dovetail.dev, parameters: {apiVersion: dovetail.dev/v1alpha1, kind: GPUConfig, enforcement: BestEffort, locked: [enforcement]}}}]
ones:
  selectors: [{cel: {expression: 'device.driver == "dovetail.dev" && device.attributes["dovetail.dev"].type == "mig" && device.attributes["dovetail.dev"].profile == "1g.18gb"'}}]
anything:
  selectors: [{cel: {expression: 'device.driver == "dovetail.dev"'}}]
broken:
  selectors: [{cel: {expression: 'device.driver == "dovetail.dev"'}}]
  config: [{opaque: {driver: dovetail.dev, parameters: {apiVersion: dovetail.dev/v1alpha1, kind: GPUConfig, mode: 1}}}]
gpu.example.com:
  selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]
`

// fleets that tests have made, by their machines: to simulate one takes a moment.
var fleets = map[string]*fleet.Fleet{}

// checker of a cluster with such machines, with spaces between.
func checker(t testing.TB, machines string) *Checker {
	t.Helper()
	if fleets[machines] == nil {
		fleets[machines] = fleettest.New(t, strings.Fields(machines)...)
	}
	c := &Checker{Classes: NewClasses(), Fleet: fleets[machines]}
	specs := map[string]resourceapi.DeviceClassSpec{}
	if err := yaml.UnmarshalStrict([]byte(classes), &specs); err != nil {
		t.Fatal(err)
	}
	for name, spec := range specs {
		c.Classes.Set(&resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
	}
	return c
}

func claimSpec(t testing.TB, devices string) *resourceapi.ResourceClaimSpec {
	t.Helper()
	var spec resourceapi.ResourceClaimSpec
	if err := yaml.UnmarshalStrict([]byte(devices), &spec.Devices); err != nil {
		t.Fatal(err)
	}
	return &spec
}

// with is a claim of one request, whose exactly is body, with a configuration of such
// fields.
func with(body, fields string) string {
	return `{requests: [{name: r, exactly: ` + body + `}], config: [{opaque: {driver: dovetail.dev, parameters: {apiVersion: dovetail.dev/v1alpha1, kind: GPUConfig, ` + fields + `}}}]}`
}

// one is a claim of one request.
func one(body string) string { return `{requests: [{name: r, exactly: ` + body + `}]}` }

// check wants one line with all of the words; no words means no line.
func check(t *testing.T, what string, lines, words []string) {
	t.Helper()
	if words == nil {
		if len(lines) > 0 {
			t.Errorf("%s: %q", what, lines)
		}
		return
	}
	if len(lines) != 1 {
		t.Fatalf("%s: %d lines, want one: %q", what, len(lines), lines)
	}
	for _, word := range words {
		if !strings.Contains(lines[0], word) {
			t.Errorf("%s: %q is not in %q", what, word, lines[0])
		}
	}
}

func TestRefused(t *testing.T) {
	const capacity = "spec.devices.requests[0].exactly.capacity.requests"
	for name, test := range map[string]struct {
		devices string
		words   []string
	}{
		"no memory":               {one(`{deviceClassName: mps.dovetail.dev, capacity: {requests: {memory: 0}}}`), []string{capacity + "[memory]: 0 is too little", "nearest that works is 1Mi"}},
		"hardly any memory":       {one(`{deviceClassName: timeslice.dovetail.dev, capacity: {requests: {memory: 10Ki}}}`), []string{capacity + "[memory]: 10Ki", "1Mi"}},
		"negative memory":         {one(`{deviceClassName: gpu.dovetail.dev, capacity: {requests: {memory: -1Gi}}}`), []string{capacity + "[memory]: -1Gi", "nearest that works is 0"}},
		"too much compute":        {one(`{deviceClassName: mps.dovetail.dev, capacity: {requests: {compute: 101}}}`), []string{capacity + "[compute]: 101 is too much", "nearest that works is 100"}},
		"negative compute":        {one(`{deviceClassName: small, capacity: {requests: {compute: -1}}}`), []string{capacity + "[compute]: -1", "nearest that works is 0"}},
		"nobody":                  {one(`{deviceClassName: mps.dovetail.dev, capacity: {requests: {clients: 0}}}`), []string{capacity + "[clients]: 0", "nearest that works is 1"}},
		"compute of a time slice": {one(`{deviceClassName: timeslice.dovetail.dev, capacity: {requests: {compute: 25}}}`), []string{capacity + "[compute]: time slices have no such capacity: want clients, memory"}},
		"a name that is not there": {one(`{deviceClassName: gpu.dovetail.dev, capacity: {requests: {memry: 1Gi}}}`),
			[]string{capacity + "[memry]: GPUs have no such capacity: want copyEngines, decoders,"}},
		"of no kind at all": {one(`{deviceClassName: anything, capacity: {requests: {memry: 1Gi}}}`),
			[]string{capacity + "[memry]: devices have no such capacity: want bandwidth, clients, compute,"}},
		"a name with its domain": {one(`{deviceClassName: mps.dovetail.dev, capacity: {requests: {dovetail.dev/memory: 1Gi}}}`), []string{"[dovetail.dev/memory]", "want memory, without the domain"}},
		"an alternative": {`{requests: [{name: r, firstAvailable: [{name: a, deviceClassName: gpu.dovetail.dev}, {name: b, deviceClassName: mps.dovetail.dev, capacity: {requests: {memory: 0}}}]}]}`,
			[]string{"spec.devices.requests[0].firstAvailable[1].capacity.requests[memory]: 0"}},
		"the type in the request": {one(`{deviceClassName: anything, selectors: [{cel: {expression: 'device.attributes["dovetail.dev"].type == "mps"'}}], capacity: {requests: {memory: 0}}}`), []string{"[memory]: 0"}},

		"unknown field":           {with(`{deviceClassName: gpu.dovetail.dev}`, `mode: 1`), []string{"spec.devices.config[0].opaque.parameters", `unknown field "mode"`}},
		"unknown interval":        {with(`{deviceClassName: timeslice.dovetail.dev}`, `sharing: {timeSlicing: {interval: Tiny}}`), []string{"sharing.timeSlicing.interval", `"Tiny"`, `"Short"`}},
		"percentage":              {with(`{deviceClassName: gpu.dovetail.dev}`, `sharing: {strategy: MPS, mps: {activeThreadPercentage: 101}}`), []string{"activeThreadPercentage", "nearest is 100"}},
		"bad and of nobody":       {with(`{deviceClassName: gpu.example.com}`, `mode: 1`), []string{`unknown field "mode"`}},
		"a locked field":          {with(`{deviceClassName: small}`, `enforcement: None`), []string{"request r of DeviceClass small", "spec.devices.config[0].opaque.parameters: enforcement: Forbidden: the DeviceClass has locked it"}},
		"a claim that locks":      {with(`{deviceClassName: gpu.dovetail.dev}`, `locked: [sharing]`), []string{"locked", "only a DeviceClass can lock fields"}},
		"mode of a partition":     {with(`{deviceClassName: mig.dovetail.dev}`, `computeMode: Default`), []string{"requests[0].exactly: configuration of request r", "computeMode", "claim a whole GPU"}},
		"limits beside the share": {with(`{deviceClassName: mps.dovetail.dev}`, `sharing: {mps: {memoryLimit: 1Gi}}`), []string{"sharing.mps", "request memory and compute"}},
		"Strict alone":            {with(`{deviceClassName: gpu.dovetail.dev}`, `sharing: {strategy: MPS}, enforcement: Strict`), []string{"enforcement: Strict", "nearest that works is BestEffort"}},
		"a NIC's":                 {strings.ReplaceAll(with(`{deviceClassName: gpu.dovetail.dev}`, `mtu: 9000`), "GPUConfig", "NICConfig"), []string{"spec.devices.config[0].opaque.parameters: kind: NICConfig, but", "GPUConfig"}},
		"in one of two alternatives": {`{requests: [{name: r, firstAvailable: [{name: a, deviceClassName: gpu.dovetail.dev}, {name: b, deviceClassName: mig.dovetail.dev}]}],
			config: [{requests: [r], opaque: {driver: dovetail.dev, parameters: {apiVersion: dovetail.dev/v1alpha1, kind: GPUConfig, computeMode: Default}}}]}`,
			[]string{"firstAvailable[1]: configuration of request r/b", "computeMode"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := checker(t, "dgx-h100").Claim(t.Context(), claimSpec(t, test.devices), field.NewPath("spec"))
			check(t, "refused", f.Refused, test.words)
			check(t, "warnings", f.Warnings, nil)
		})
	}
}

func TestWarned(t *testing.T) {
	const request = "spec.devices.requests[0].exactly"
	for name, test := range map[string]struct {
		machines string
		devices  string
		words    []string
	}{
		"no partition of the class has so much": {"hgx-h200", one(`{deviceClassName: ones, capacity: {requests: {memory: 25Gi}}}`),
			[]string{request + ".capacity.requests[memory]: 25Gi fits no partition that is asked for; the nearest of this cluster is 1g.35gb (32.25Gi) on H200"}},
		"more than any GPU has": {"hgx-h200", one(`{deviceClassName: mps.dovetail.dev, capacity: {requests: {memory: 500Gi}}}`),
			[]string{"500Gi fits no share by MPS of this cluster; the nearest is H200 ("}},
		"of two kinds of GPU the larger": {"t4 hgx-h200", one(`{deviceClassName: gpu.dovetail.dev, capacity: {requests: {memory: 500Gi}}}`),
			[]string{"500Gi fits no GPU of this cluster; the nearest is H200 ("}},
		"more than the size": {"dgx-h100", one(`{deviceClassName: small, capacity: {requests: {memory: 12Gi}}}`), []string{"12Gi fits no share by MPS that is asked for; the nearest of this cluster is H100 80GB HBM3 ("}},
		"more than any NIC has": {"dgx-h100", one(`{deviceClassName: rdma.dovetail.dev, capacity: {requests: {bandwidth: 500G}}}`),
			[]string{"500G fits no NIC of this cluster; the nearest is ", "(400G)"}},
		"a profile that is not there": {"dgx-h100", one(`{deviceClassName: mig.dovetail.dev, selectors: [{cel: {expression: 'device.attributes["dovetail.dev"].profile == "1g.11gb"'}}]}`),
			[]string{request + ": no GPU of this cluster offers profile 1g.11gb now; the nearest is 1g.10gb ("}},
		"a profile's name that is none": {"dgx-h100", one(`{deviceClassName: mig.dovetail.dev, selectors: [{cel: {expression: 'device.attributes["dovetail.dev"].profile == "3g.40g"'}}]}`),
			[]string{"offers profile 3g.40g now; the nearest is 3g.40gb ("}},
		"memory by a selector": {"dgx-h100", one(`{deviceClassName: mig.dovetail.dev, selectors: [{cel: {expression: 'device.capacity["dovetail.dev"].memory.compareTo(quantity("100Gi")) >= 0'}}]}`),
			[]string{"100Gi fits no partition of this cluster; the nearest is 7g.80gb ("}},
		"a product that is not there": {"dgx-h100", one(`{deviceClassName: gpu.dovetail.dev, selectors: [{cel: {expression: 'device.attributes["dovetail.dev"].productName == "NVIDIA B200"'}}]}`),
			[]string{"no device of this cluster passes the selectors of the request and its DeviceClass now"}},
		"a kind that is not there": {"t4", one(`{deviceClassName: mig.dovetail.dev, capacity: {requests: {memory: 1Gi}}}`), []string{"this cluster has no partitions now"}},
		"a typing error": {"t4", one(`{deviceClassName: gpu.dovetail.dev, selectors: [{cel: {expression: 'device.attributes["dovetail.dev"].productNam == "NVIDIA T4"'}}]}`),
			[]string{"a selector fails", "no such key: productNam; the nearest attribute is productName, and docs/attributes.md has all"}},
		"another domain": {"t4", one(`{deviceClassName: gpu.dovetail.dev, selectors: [{cel: {expression: 'device.attributes["dovetail"].productName == "NVIDIA T4"'}}]}`),
			[]string{"a selector fails", `no such key: productName: want device.attributes["dovetail.dev"].productName`}},
		"Kubernetes' own": {"t4", one(`{deviceClassName: gpu.dovetail.dev, selectors: [{cel: {expression: 'device.attributes["dovetail.dev"].pcieRoot != ""'}}]}`),
			[]string{`no such key: pcieRoot: want device.attributes["resource.kubernetes.io"].pcieRoot`}},
		"MPS before Volta": {"p100", with(`{deviceClassName: gpu.dovetail.dev}`, `sharing: {strategy: MPS}`), []string{"configuration of request r: sharing.strategy: MPS", "7.0", "use TimeSlicing"}},
		"limit":            {"dgx-h100", with(`{deviceClassName: gpu.dovetail.dev}`, `sharing: {strategy: MPS, mps: {memoryLimit: 100Gi}}`), []string{"sharing.mps.memoryLimit: 100Gi", "nearest is H100"}},
		"Strict":           {"dgx-h100", with(`{deviceClassName: mps.dovetail.dev}`, `enforcement: Strict`), []string{"enforcement: Strict", "nearest that works is BestEffort"}},
		"Strict turns":     {"dgx-h100", with(`{deviceClassName: timeslice.dovetail.dev}`, `enforcement: Strict`), []string{"enforcement: Strict", "nearest that works is None"}},
		"no class, or a new one": {"dgx-h100", one(`{deviceClassName: new, capacity: {requests: {memory: 0, compute: 101}}}`),
			[]string{request + `.deviceClassName: there is no DeviceClass "new" now`, "kubectl get deviceclasses"}},
		"no class of an alternative": {"", `{requests: [{name: r, firstAvailable: [{name: a, deviceClassName: gpu.dovetail.dev}, {name: b, deviceClassName: migs}]}]}`,
			[]string{`spec.devices.requests[0].firstAvailable[1].deviceClassName: there is no DeviceClass "migs" now`}},
		"a look without admin access": {"t4", one(`{deviceClassName: monitor.dovetail.dev}`), []string{request + ".adminAccess: devices of type monitor are for requests that set it to true"}},
		"a look at what is tainted": {"t4", one(`{deviceClassName: monitor.dovetail.dev, adminAccess: true, tolerations: [{key: dovetail.dev/leaving, operator: Exists}]}`),
			[]string{request + ".tolerations: devices of type monitor have the taint dovetail.dev/monitor: tolerate it, by {key: dovetail.dev/monitor, operator: Exists}"}},
		"a broken class": {"t4", one(`{deviceClassName: broken}`), []string{request + ".deviceClassName: DeviceClass broken: spec.config[0].opaque.parameters", `unknown field "mode"`}},
	} {
		t.Run(name, func(t *testing.T) {
			f := checker(t, test.machines).Claim(t.Context(), claimSpec(t, test.devices), field.NewPath("spec"))
			check(t, "refused", f.Refused, nil)
			check(t, "warnings", f.Warnings, test.words)
		})
	}
}

// Whatever the class will be, its claims cannot do this.
func TestRefusedOfANewClass(t *testing.T) {
	f := checker(t, "t4").Claim(t.Context(), claimSpec(t, with(`{deviceClassName: new}`, `locked: [sharing]`)), field.NewPath("spec"))
	check(t, "refused", f.Refused, []string{"configuration of request r:", "only a DeviceClass can lock fields"})
	check(t, "warnings", f.Warnings, []string{"no DeviceClass", "new"})
}

// Who makes a PartitionClass and a claim for it in one go is not told that its DeviceClass is
// not there yet.
func TestComingClass(t *testing.T) {
	c := checker(t, "t4")
	c.Coming = func(_ context.Context, name string) bool { return name == "coming" }
	for class, words := range map[string][]string{"coming": nil, "gone": {`no DeviceClass "gone"`}} {
		f := c.Claim(t.Context(), claimSpec(t, one(`{deviceClassName: `+class+`}`)), field.NewPath("spec"))
		check(t, "warnings", f.Warnings, words)
	}
}

// What prepare takes, or what cannot be told, passes without a word.
func TestTaken(t *testing.T) {
	for name, test := range map[string]struct{ machines, devices string }{
		"a GPU":                        {"dgx-h100", one(`{deviceClassName: gpu.dovetail.dev}`)},
		"a share":                      {"dgx-h100", one(`{deviceClassName: mps.dovetail.dev, capacity: {requests: {memory: 10Gi, compute: 25, clients: 2}}}`)},
		"between two steps":            {"dgx-h100", one(`{deviceClassName: mps.dovetail.dev, capacity: {requests: {memory: 1500Ki, compute: 0}}}`)},
		"all of a GPU":                 {"dgx-h100", one(`{deviceClassName: timeslice.dovetail.dev, capacity: {requests: {memory: 79Gi}}}`)},
		"less than the size":           {"dgx-h100", one(`{deviceClassName: small, capacity: {requests: {memory: 5Gi}}}`)},
		"a partition by its memory":    {"hgx-h200", one(`{deviceClassName: mig.dovetail.dev, capacity: {requests: {memory: 25Gi}}}`)},
		"a partition by its profile":   {"hgx-h200", one(`{deviceClassName: ones}`)},
		"one GPU of many":              {"dgx-h100", one(`{deviceClassName: gpu.dovetail.dev, selectors: [{cel: {expression: 'device.attributes["dovetail.dev"].uuid == "GPU-1"'}}]}`)},
		"a cluster without devices":    {"", one(`{deviceClassName: mps.dovetail.dev, capacity: {requests: {memory: 500Gi}}}`)},
		"another driver's":             {"dgx-h100", one(`{deviceClassName: gpu.example.com, capacity: {requests: {memory: 0, compute: 101}}}`)},
		"configured":                   {"dgx-h100", with(`{deviceClassName: gpu.dovetail.dev}`, `sharing: {strategy: MPS, mps: {activeThreadPercentage: 50, memoryLimit: 20Gi}}`)},
		"beside what is locked":        {"dgx-h100", with(`{deviceClassName: small}`, `sharing: {mps: {priority: BelowNormal}}`)},
		"one kind of two can":          {"p100 dgx-h100", with(`{deviceClassName: gpu.dovetail.dev}`, `sharing: {strategy: MPS}`)},
		"Strict where a node can":      {"dgx-h100 mps-v3", with(`{deviceClassName: mps.dovetail.dev}`, `enforcement: Strict`)},
		"who looks configures at will": {"dgx-h100", with(`{deviceClassName: mig.dovetail.dev, adminAccess: true}`, `computeMode: Default`)},
		"a look":                       {"t4", one(`{deviceClassName: monitor.dovetail.dev, adminAccess: true, allocationMode: All, tolerations: [{key: dovetail.dev/monitor, operator: Exists}]}`)},
		"a look at all":                {"t4", one(`{deviceClassName: monitor.dovetail.dev, adminAccess: true, tolerations: [{operator: Exists}]}`)},
		"each alternative its own": {"dgx-h100", `{requests: [{name: r, firstAvailable: [{name: a, deviceClassName: gpu.dovetail.dev}, {name: b, deviceClassName: mig.dovetail.dev}]}],
			config: [{requests: [r/a], opaque: {driver: dovetail.dev, parameters: {apiVersion: dovetail.dev/v1alpha1, kind: GPUConfig, computeMode: Default}}}]}`},
		"another driver's parameters": {"dgx-h100", `{requests: [{name: r, exactly: {deviceClassName: gpu.dovetail.dev}}], config: [{opaque: {driver: gpu.example.com, parameters: {mode: 1}}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := checker(t, test.machines).Claim(t.Context(), claimSpec(t, test.devices), field.NewPath("spec"))
			check(t, "refused", f.Refused, nil)
			check(t, "warnings", f.Warnings, nil)
		})
	}
}

func TestTemplatesPath(t *testing.T) {
	f := checker(t, "t4").Claim(t.Context(), claimSpec(t, one(`{deviceClassName: mps.dovetail.dev, capacity: {requests: {memory: 0}}}`)), field.NewPath("spec", "spec"))
	check(t, "refused", f.Refused, []string{"spec.spec.devices.requests[0].exactly.capacity.requests[memory]: 0"})
}

// Each claim that is checked waits for this.
func BenchmarkClaim(b *testing.B) {
	c := checker(b, "dgx-h100 hgx-h200 hgx-b200 dgx-a100 l40s")
	spec := claimSpec(b, one(`{deviceClassName: mig.dovetail.dev, selectors: [{cel: {expression: 'device.attributes["dovetail.dev"].profile == "1g.10gb"'}}], capacity: {requests: {memory: 200Gi}}}`))
	for b.Loop() {
		if f := c.Claim(b.Context(), spec, field.NewPath("spec")); len(f.Warnings) != 1 {
			b.Fatal(f)
		}
	}
	b.ReportMetric(float64(len(c.Fleet.Models())), "models")
}
