package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// execute runs the command line on a simulated machine without an agent.
func execute(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	return executeOn(t, simulatortest.NewWithLibrary(t, name), args...)
}

func executeOn(t *testing.T, m *simulatortest.Machine, args ...string) (string, error) {
	t.Helper()
	t.Setenv(pluginDirVariable, filepath.Join(m.Root(), "plugin"))
	t.Setenv(cdiDirVariable, filepath.Join(m.Root(), "cdi"))
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append(args, "--driver-root", m.Root(), "--sysfs-root", m.Root()+"/sys", "--proc-root", m.Root()+"/proc"))
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func contains(t *testing.T, out string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(out, w) {
			t.Errorf("%q is not in\n%s", w, out)
		}
	}
}

func TestInventoryForPeople(t *testing.T) {
	out, err := execute(t, "broken", "inventory")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, out, "Driver ", "GPU", "gpu-", "unknown", "bus", "reset")
}

// What is missing is said, also of profiles, and nothing is before the first table.
func TestInventoryWithoutADriver(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	out, err := executeOn(t, m, "inventory")
	if err != nil {
		t.Fatal(err)
	}
	if contains(t, out, "GPUs: NVML cannot be opened"); !strings.HasPrefix(out, "NIC ") {
		t.Errorf("it does not begin with the NICs:\n%s", out)
	}
	if out, err = executeOn(t, m, "inventory", "--profiles"); err != nil {
		t.Fatal(err)
	}
	contains(t, out, "There are no GPUs.\n", "GPUs: NVML cannot be opened", "install the NVIDIA driver")
}

// In the agent's container the node's name is known, and with it what an administrator
// says of its NICs.
func TestInventoryGoesByTheNodesName(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "flat-vm")
	described := simulatortest.Describe(t, "flat-vm")
	file := filepath.Join(t.TempDir(), "network.yaml")
	rule := fmt.Sprintf(`{apiVersion: dovetail.dev/v1alpha1, kind: NodeNetwork, rules: [{nodes: ["gpu-vm-*"], pairs: [{gpu: %q, nic: %q}]}]}`,
		described.GPUs[0].Address, described.NICs[2].Address)
	if err := os.WriteFile(file, []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
	for node, declared := range map[string]bool{"gpu-vm-7": true, "": false} {
		t.Setenv(nodeNameVariable, node)
		out, err := executeOn(t, m, "inventory", "-o", "json", "--network-config", file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out, `"string": "declared"`) != declared {
			t.Errorf("node %q: declared pairs: %v", node, !declared)
		}
		contains(t, out, fmt.Sprintf(`"nodeName": %q`, cmp.Or(node, "this-node")))
	}
}

func TestInventoryShowsPartitionsThatExist(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "static-mig")
	whole := m.Spec().GPUs[2]
	if err := m.SetMIGMode(whole.UUID, true); err != nil {
		t.Fatal(err)
	}
	for _, at := range []machine.Placement{{Start: 0, Size: 1}, {Start: 1, Size: 1}} {
		made, err := m.MakeGPUInstance(whole.UUID, 19, &at)
		if err != nil {
			t.Fatal(err)
		}
		if at.Start == 1 { // the other has no compute instance
			if _, err := m.MakeComputeInstance(whole.UUID, made.ID, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := executeOn(t, m, "inventory")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, out, "2g.20gb@2 3g.40gb@4 ", "1g.10gb@0 1g.10gb@1 ", "0000:9d:00.0: GPU instance ", "has no compute instance", "0000:9d:00.0: in MIG mode", "off: nvidia-smi -i 0000:9d:00.0 -mig 0\n")

	// An agent has made the one, and is about to give it a compute instance.
	state, err := m.State()
	if err != nil {
		t.Fatal(err)
	}
	records, err := journal.Open(filepath.Join(m.Root(), "plugin", "claims"))
	if err != nil {
		t.Fatal(err)
	}
	intent, err := json.Marshal(plan.Step{Kind: plan.MakeGPUInstance, GPU: whole.UUID, Partition: &plan.Partition{ProfileID: 19, Placement: machine.Placement{Start: 0, Size: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := records.Put(&journal.Entry{Claim: journal.Claim{Namespace: "n", Name: "c", UID: "u"}, BootID: state.BootID, Steps: []journal.Step{{Intent: intent}}}); err != nil {
		t.Fatal(err)
	}
	if out, err = executeOn(t, m, "inventory"); err != nil {
		t.Fatal(err)
	}
	contains(t, out, "1g.10gb@0* 1g.10gb@1 ", "* made for a claim")
	if strings.Contains(out, "has no compute instance") {
		t.Errorf("a claim's instance is called a fault:\n%s", out)
	}
}

// What claims have and the node offers no more is told to people, and is among the slices.
func TestInventoryOfRemnants(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "dgx-h100")
	out, err := executeOn(t, m, "inventory")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out, "Claims have these") {
		t.Errorf("without claims:\n%s", out)
	}
	state, err := m.State()
	if err != nil {
		t.Fatal(err)
	}
	records, err := journal.Open(filepath.Join(m.Root(), "plugin", "claims"))
	if err != nil {
		t.Fatal(err)
	}
	detail, err := json.Marshal(map[string][]plan.Device{"devices": {{
		Name: "pair-99-00-18-00", Kind: machine.KindPair, GPU: "GPU-gone", NIC: &plan.NIC{Name: "nic-18-00", Function: machine.Address{Bus: 0x18}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := records.Put(&journal.Entry{Claim: journal.Claim{Namespace: "n", Name: "c", UID: "u"}, BootID: state.BootID, Holds: []string{"nic-18-00"}, Detail: detail}); err != nil {
		t.Fatal(err)
	}
	for output, words := range map[string]string{
		"table": "Claims have these, which are not offered any more; what is left of them is nobody else's until they are released:\n  pair-99-00-18-00\n",
		"yaml":  "name: pair-99-00-18-00\n",
	} {
		if out, err = executeOn(t, m, "inventory", "-o", output); err != nil {
			t.Fatal(err)
		}
		contains(t, out, words)
	}
}

// An Ampere GPU takes a reset to leave MIG mode, too.
func TestInventoryOfAmpereInMIGMode(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "dgx-a100")
	gpu := m.Spec().GPUs[0]
	if err := m.SetMIGMode(gpu.UUID, true); err != nil {
		t.Fatal(err)
	}
	if err := m.Reset(gpu.UUID); err != nil {
		t.Fatal(err)
	}
	out, err := executeOn(t, m, "inventory")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, out, fmt.Sprintf("off: nvidia-smi -i %[1]s -mig 0 and then nvidia-smi -i %[1]s --gpu-reset\n", gpu.Address))
}

// Without privileges the driver tells less, which is said where people look for it.
func TestInventoryWithoutPrivileges(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "static-mig")
	for _, gpu := range []string{"0", "2"} {
		if err := m.Fail(gpu, "nvmlDeviceGetGpuInstancePossiblePlacements", simulator.Failure{Times: 1000, Error: simulator.FailureNoPermission}); err != nil {
			t.Fatal(err)
		}
	}
	out, err := executeOn(t, m, "inventory")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, out, "0000:1b:00.0: it is in MIG mode, and can be given out neither whole nor in partitions", "gpuAccess: privileged")
	if strings.Contains(out, "0000:9d:00.0: ") {
		t.Errorf("what can be given out whole is called a fault:\n%s", out)
	}
	if out, err = executeOn(t, m, "inventory", "--profiles"); err != nil {
		t.Fatal(err)
	}
	contains(t, out, "  gpu-1b-00: the driver tells no profiles", "  gpu-9d-00: the driver tells no profiles", "MIG mode on: nvidia-smi -i ADDRESS -mig 1\n")
}

func TestProfiles(t *testing.T) {
	for name, words := range map[string][]string{
		"static-mig":   {"NVIDIA H100 80GB HBM3\n  gpu-1b-00 gpu-43-00 gpu-9d-00: offered\n", "{0,1,2,3,4,5,6}:1  7\n", "1g.10gb+me ", "{0,4}:4 "},
		"rtx-pro-6000": {"1g.24gb+me.all ", "{0,6}:6 "},
		"dgx-a100":     {"  gpu-07-00 gpu-0f-00 ", ": MIG mode is off", "7g.80gb "},
		"t4":           {"Tesla T4\n  gpu-3b-00: it cannot be partitioned\n"},
	} {
		out, err := execute(t, name, "inventory", "--profiles")
		if err != nil {
			t.Fatal(err)
		}
		contains(t, out, words...)
	}
	for format, unmarshal := range formats {
		out, err := execute(t, "mixed", "inventory", "--profiles", "-o", format)
		if err != nil {
			t.Fatal(err)
		}
		var groups []shapes
		if err := unmarshal([]byte(out), &groups); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		gpus := 0
		for _, g := range groups {
			gpus += len(g.GPUs)
		}
		if len(groups) < 2 || gpus < len(groups) {
			t.Errorf("%s: %+v", format, groups)
		}
	}
}

var formats = map[string]func([]byte, any) error{
	"json": json.Unmarshal,
	"yaml": func(content []byte, into any) error { return yaml.UnmarshalStrict(content, into) },
}

func TestInventoryForPrograms(t *testing.T) {
	for format, unmarshal := range formats {
		out, err := execute(t, "sixteen", "inventory", "--output", format, "--node-name", "node-7")
		if err != nil {
			t.Fatal(err)
		}
		var list resourceapi.ResourceSliceList
		if err := unmarshal([]byte(out), &list); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		devices := 0
		for _, s := range list.Items {
			devices += len(s.Spec.Devices)
			if s.Spec.Pool.Name != "node-7" || int(s.Spec.Pool.ResourceSliceCount) != len(list.Items) {
				t.Errorf("%s: pool %+v of %d slices", format, s.Spec.Pool, len(list.Items))
			}
		}
		if devices != 4*16 { // GPUs, shares of two kinds, and monitors
			t.Errorf("%s: %d devices", format, devices)
		}
	}
}

func TestInventoryOfShares(t *testing.T) {
	sizes := []string{"name=small,kind=mps,memory=10Gi,compute=25", "kind=timeslice,memory=200Gi,name=huge"}
	t.Setenv(sharesVariable, strings.Join(sizes, " "))
	out, err := execute(t, "t4", "inventory", "--time-slice-clients=4")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, out, "mps        any ", "mps        small  10.0 GiB   25%      48       BestEffort       1\n",
		"timeslice  any    any        -        4        None             1\n", "timeslice  huge   200.0 GiB  -        4        -                0\n")
	// Flags have the last word.
	if out, err = execute(t, "t4", "inventory", "--output=json", "--share="+strings.ReplaceAll(sizes[0], "small", "other")); err != nil {
		t.Fatal(err)
	}
	if contains(t, out, `"mps-3b-00-other"`, `"10Gi"`); strings.Contains(out, "small") {
		t.Error("the environment's sizes are there, too")
	}
}

// Where not all GPUs keep shares to their memory alike, each level has its line.
func TestSharesByEnforcement(t *testing.T) {
	m := simulatortest.Describe(t, "mps-v3")
	m.GPUs[0].LimitsCgroups = false
	wanted, err := class.WantedOn(nil, nil, m.GPUs)
	if err != nil {
		t.Fatal(err)
	}
	offer, err := wanted.Offer(&m)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := writeShares(&out, &seen{published: m, offer: offer}); err != nil {
		t.Fatal(err)
	}
	contains(t, out.String(), "any     any      60       Strict           1\n", "any     any      60       BestEffort       1\n",
		"any     -        16       Strict           1\n", "any     -        16       None             1\n")
}

func TestBadFlagsAreNamed(t *testing.T) {
	for args, words := range map[string]string{
		"inventory --output xml":                       `--output: "xml" is not known: want table, yaml or json`,
		"run --node-name= --pod-uid=":                  "--node-name: is empty",
		"run --node-name=a --unhealthy-effect=Execute": `--unhealthy-effect: "Execute" is not known`,
		"topology --output wide":                       `--output: "wide" is not known: want table, yaml or json`,
		"run surplus":                                  "surplus",
	} {
		if _, err := execute(t, "t4", strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: error %v", args, err)
		}
	}
}
