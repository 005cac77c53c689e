package nodenetwork_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/nodenetwork"
)

const file = `apiVersion: dovetail.dev/v1alpha1
kind: NodeNetwork
rules:
- nodes: [gpu-vm-*, odd]
  pairs: [{gpu: "00000000:05:00.0", nic: "0000:01:00.0"}]
  rails: ["0000:02:00.0", "0000:01:00.0"]
- nodes: [gpu-*]
  virtualFunctions: [{nic: "0000:1a:00.0", count: 16}]
  lossless: {pfcPriorities: [3, 4], trust: dscp, dscp: {48: 6, 26: 3}}
- nodes: [gpu-vm-1]
  rails: ["0000:09:00.0"]
`

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "network.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	nic := func(bus uint8) machine.Address { return machine.Address{Bus: bus} }
	vm := machine.Network{
		Pairs: []machine.DeclaredPair{{GPU: nic(5), NIC: nic(1)}},
		Rails: map[machine.Address]int{nic(2): 0, nic(1): 1},
	}
	for node, want := range map[string]machine.Network{
		"gpu-vm-1": vm, // the first, though the last names it alone
		"odd":      vm,
		"gpu-7": {
			VFs: []machine.VFCount{{NIC: nic(0x1a), Count: 16}},
			Lossless: &machine.DCB{
				PFC: [8]bool{3: true, 4: true}, Trust: machine.TrustDSCP,
				DSCP: []machine.DSCPPriority{{DSCP: 26, Priority: 3}, {DSCP: 48, Priority: 6}},
			},
		},
		"cpu-1": {},
	} {
		got, err := nodenetwork.Read(path, node)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", node, got, err, want)
		}
	}
	if got, err := nodenetwork.Read("", "gpu-7"); err != nil || !reflect.DeepEqual(got, machine.Network{}) {
		t.Errorf("no file: %+v, %v", got, err)
	}
}

func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte(strings.Replace(file, "count: 16", "count: 0", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, parts := range map[string][]string{
		bad:                             {"bad.yaml", "rules[1].virtualFunctions[0].count", "want 1 at least"},
		filepath.Join(dir, "none.yaml"): {"none.yaml", "no such file"},
	} {
		_, err := nodenetwork.Read(path, "gpu-1")
		if err == nil {
			t.Errorf("%s: no error", path)
			continue
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in %q", part, err)
			}
		}
	}
}

// FuzzFor: what decodes can be converted.
func FuzzFor(f *testing.F) {
	f.Add([]byte(file), "gpu-1")
	f.Fuzz(func(t *testing.T, content []byte, node string) {
		network, err := v1alpha1.DecodeNodeNetwork(content)
		if err != nil {
			return
		}
		if _, err := nodenetwork.For(network, node); err != nil {
			t.Error(err)
		}
	})
}
