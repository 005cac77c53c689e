package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

var update = flag.Bool("update", false, "write the golden files")

func TestTopologyForPeople(t *testing.T) {
	for _, name := range []string{"dgx-h100", "hgx-4nic", "gb200", "xe8640", "flat-vm", "nic-only", "odd-nics", "sriov", "t4"} {
		t.Run(name, func(t *testing.T) {
			m := simulatortest.Describe(t, name)
			golden(t, name+".txt", topologyOf(&m), "table")
		})
	}
}

func TestTopologyForPrograms(t *testing.T) {
	m := simulatortest.Describe(t, "sriov")
	for _, format := range []string{"json", "yaml"} {
		golden(t, "sriov."+format, topologyOf(&m), format)
	}
}

// What an administrator declares is shown, and what of it is not there.
func TestTopologyThatIsDeclared(t *testing.T) {
	m := simulatortest.Describe(t, "flat-vm")
	m.Network.Pairs = []machine.DeclaredPair{
		{GPU: m.GPUs[0].Address, NIC: m.NICs[2].Address}, {GPU: m.GPUs[1].Address, NIC: machine.Address{Bus: 9}},
	}
	m.NICs[3].Health = machine.Health{Reason: machine.FaultLinkDown, Message: "its port has no link: look at the cable"}
	m.NICs[4].Away = true
	golden(t, "declared.txt", topologyOf(&m), "table")
}

// In exclusive mode people see why two GPUs cannot share a NIC.
func TestTopologyOfExclusiveRDMA(t *testing.T) {
	m := simulatortest.Describe(t, "hgx-4nic")
	m.RDMAExclusive = true
	golden(t, "exclusive.txt", topologyOf(&m), "table")
}

func golden(t *testing.T, name string, view topology, format string) {
	t.Helper()
	var out bytes.Buffer
	if err := topologyViews[format](&out, view); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "topology", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("it is not that of %s; if it should be, run: go test ./cmd/dovetail-node -update\n%s", path, out.String())
	}
}

// Through the command line, with the file of the administrator.
func TestTopologyWithAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "network.yaml")
	content := `{apiVersion: dovetail.dev/v1alpha1, kind: NodeNetwork, rules: [{nodes: [node-7], rails: ["0000:fe:00.0"]}]}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	m := simulatortest.NewWithLibrary(t, "dgx-h100")
	for node, declared := range map[string]bool{"node-7": true, "node-8": false} {
		out, err := executeOn(t, m, "topology", "-o", "json", "--network-config", file, "--node-name", node)
		if err != nil {
			t.Fatal(err)
		}
		var view topology
		if err := json.Unmarshal([]byte(out), &view); err != nil {
			t.Fatal(err)
		}
		undeclared := slices.ContainsFunc(view.Faults, func(f machine.Fault) bool { return f.Kind == machine.FaultUndeclared && f.Device == "0000:fe:00.0" })
		if len(view.GPUs) != 8 || view.Closeness["GPU0"]["GPU1"] != machine.ClosenessNODE || undeclared != declared {
			t.Errorf("%s: %s", node, out)
		}
	}
	if _, err := executeOn(t, m, "topology", "--network-config", file+".gone"); err == nil || !strings.Contains(err.Error(), "--network-config: open") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// A node for storage or CPUs alone has NICs, and no driver of NVIDIA's.
func TestNICsWithoutDriver(t *testing.T) {
	for command, words := range map[string][]string{
		"topology":  {"NIC0  NIC1  NUMA NODE", "mlx5_1", "No pairs are offered.", "install the NVIDIA driver"},
		"inventory": {"mlx5_1", "400 Gb/s  yes", "install the NVIDIA driver"},
	} {
		out, err := execute(t, "nic-only", command)
		if err != nil {
			t.Fatal(err)
		}
		contains(t, out, words...)
	}
	out, err := execute(t, "sriov", "inventory")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, out, "gpu-1b-00", "mlx5_0", "Pairs of a GPU and a NIC: 2; dovetail-node topology shows them")
}
