package catalog_test

import (
	"fmt"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func TestNetworks(t *testing.T) {
	names := attributeNames{}
	for name, m := range networks() {
		t.Run(name, func(t *testing.T) {
			pool := catalog.Build(m, catalog.Options{})
			withinLimits(t, pool.Slices())
			unique(t, pool)
			names.same(t, pool)
			everythingCounts(t, m, pool)
			policies(t, pool)
		})
	}
}

// What an administrator declares of a machine that hides where its devices sit.
func TestDeclared(t *testing.T) {
	m := simulatortest.Describe(t, "flat-vm")
	var nics []machine.Address
	for i := range m.NICs {
		if m.NICs[i].Offered() {
			nics = append(nics, m.NICs[i].Address)
		}
	}
	if len(nics) != len(m.GPUs) {
		t.Fatalf("%d NICs are offered, for %d GPUs", len(nics), len(m.GPUs))
	}
	slices.Reverse(nics)
	m.Network.Rails = map[machine.Address]int{}
	for i, nic := range nics {
		m.Network.Pairs = append(m.Network.Pairs, machine.DeclaredPair{GPU: m.GPUs[i].Address, NIC: nic})
		m.Network.Rails[nic] = i
	}
	pool := catalog.Build(m, catalog.Options{})
	golden(t, "flat-vm-declared", pool.Slices())
	everythingCounts(t, m, pool)
}

// published are a machine's devices by name.
func published(m machine.Machine) map[string]resourceapi.Device {
	found := map[string]resourceapi.Device{}
	for _, d := range catalog.Build(m, catalog.Options{}).Devices {
		found[d.Name] = d
	}
	return found
}

func text(a resourceapi.DeviceAttribute) string {
	switch {
	case a.StringValue != nil:
		return *a.StringValue
	case a.BoolValue != nil:
		return fmt.Sprint(*a.BoolValue)
	case a.VersionValue != nil:
		return *a.VersionValue
	}
	return fmt.Sprint(*a.IntValue)
}

func TestAttributesOfNICs(t *testing.T) {
	const standard = "resource.kubernetes.io/"
	for _, test := range []struct {
		machine, device string
		want            map[resourceapi.QualifiedName]string
	}{
		{"pairs", "nic-25-00", map[resourceapi.QualifiedName]string{
			"type": "nic", "ifName": "eth37", "rdmaDevice": "mlx5_37", "linkLayer": "Ethernet", "linkState": "ACTIVE", "speed": "400", "mtu": "4200",
			"rail": "1", "lanes": "1", "roceV2": "true", "gidIndex": "3", "lossless": "true", "pfcPriorities": "3,4", "trust": "dscp",
			"firmwareVersion": "28.39.1002", "vendor": "NVIDIA", "model": "MT4129", "numVFs": "0", "physicalFunction": "0000:25:00.0",
			"pcieSwitch": "0000:22:00.0", standard + "pciBusID": "0000:25:00.0", standard + "pcieRoot": "pci0000:20", standard + "numaNode": "0",
		}},
		{"shared", "rdma-15-00", map[resourceapi.QualifiedName]string{"type": "rdma", "lanes": "2", "rdmaDevice": "mlx5_21"}},
		{"VFs", "vf-15-00-39", map[resourceapi.QualifiedName]string{
			"type": "vf", "ifName": "eth21v39", "mtu": "9000", "rdmaDevice": "mlx5_21_v39", "speed": "400", "numVFs": "40", "lossless": "true",
			"physicalFunction": "0000:15:00.0", standard + "pciBusID": "0000:15:05.7", standard + "pcieRoot": "pci0000:10",
		}},
		{"pairs", "pair-28-00-25-00", map[resourceapi.QualifiedName]string{
			"type": "pair", "closeness": "PIX", "uuid": "GPU-28", "productName": "NVIDIA H100 80GB HBM3", "nicPciBusID": "0000:25:00.0",
			standard + "pciBusID": "0000:28:00.0", "ifName": "eth37", "rdmaDevice": "mlx5_37", "rail": "1", "speed": "400", "trust": "dscp",
		}},
		{"VFs", "pair-18-00-15-00", map[resourceapi.QualifiedName]string{"nicPciBusID": "0000:15:01.0", "ifName": "eth21v0", "mtu": "9000", "lanes": "2"}},
		{"NICs only", "nic-15-00", map[resourceapi.QualifiedName]string{
			"ifName": "", "mtu": "0", "linkLayer": "InfiniBand", "speed": "400", "roceV2": "false", "gidIndex": "-1", "lossless": "false", "pfcPriorities": "", "trust": "", "rail": "0",
		}},
		{"link down", "nic-15-00", map[resourceapi.QualifiedName]string{"linkState": "", "linkLayer": "", "speed": "0"}},
	} {
		device, ok := published(networks()[test.machine])[test.device]
		if !ok {
			t.Errorf("%s: no device %s", test.machine, test.device)
		}
		for name, want := range test.want {
			if a, ok := device.Attributes[name]; !ok || text(a) != want {
				t.Errorf("%s, %s: %s is %+v, want %q", test.machine, test.device, name, a, want)
			}
		}
	}
}

func TestBandwidth(t *testing.T) {
	for _, test := range []struct {
		machine, device string
		want            int64
		most            int64 // of a policy; 0: there is none
	}{
		{"pairs", "nic-15-00", 400e9, 0},
		{"pairs", "pair-18-00-15-00", 400e9, 0},
		{"shared", "pair-18-00-15-00", 200e9, 0},
		{"pairs", "rdma-15-00", 400e9, 400e9},
		{"VFs", "vf-15-00-0", 400e9, 0},
		{"VFs", "pair-18-00-15-00", 200e9, 0},
		{"link down", "rdma-15-00", 0, 0},
	} {
		device := published(networks()[test.machine])[test.device]
		capacity, ok := device.Capacity["bandwidth"]
		if !ok || capacity.Value.Value() != test.want || (capacity.RequestPolicy != nil) != (test.most > 0) {
			t.Errorf("%s, %s: %+v", test.machine, test.device, capacity)
			continue
		}
		if policy := capacity.RequestPolicy; policy != nil && (policy.Default.Sign() != 0 || policy.ValidRange.Max.Value() != test.most || policy.ValidRange.Step.Value() != 1e9) {
			t.Errorf("%s, %s: %+v", test.machine, test.device, policy)
		}
	}
	pair := published(networks()["pairs"])["pair-18-00-15-00"]
	if memory := pair.Capacity["memory"]; memory.Value.Value() != 80<<30 {
		t.Errorf("the pair's memory: %+v", memory)
	}
}

func TestCountersOfVFs(t *testing.T) {
	pool := catalog.Build(networks()["VFs"], catalog.Options{})
	var names []string
	for _, set := range pool.Counters {
		names = append(names, fmt.Sprintf("%s %d", set.Name, len(set.Counters)))
	}
	if want := []string{"gpu-18-00 1", "gpu-19-00 1", "nic-15-00 32", "nic-15-00-vfs-32 8", "nic-25-00 1"}; !slices.Equal(names, want) {
		t.Errorf("counter sets %q, want %q", names, want)
	}
	for _, c := range []struct {
		set, name string
		want      int64
	}{{"nic-15-00", "vf-0", 1}, {"nic-15-00", "vf-1", 0}, {"nic-15-00-vfs-32", "vf-32", 1}, {"nic-15-00-vfs-32", "vf-33", 0}} {
		for _, set := range pool.Counters {
			if counter := set.Counters[c.name]; set.Name == c.set && counter.Value.Value() != c.want {
				t.Errorf("%s, %s: %s", c.set, c.name, counter.Value.String())
			}
		}
	}
	taken := published(networks()["VFs"])["vf-15-00-39"].ConsumesCounters
	if len(taken) != 1 || taken[0].CounterSet != "nic-15-00-vfs-32" || len(taken[0].Counters) != 1 {
		t.Errorf("the last VF takes %+v", taken)
	}
}

// A pair is sick with either of its parts; a VF with its NIC.
func TestTaintsOfNICs(t *testing.T) {
	m := networks()["VFs"]
	m.GPUs[0].Health = machine.Health{Reason: machine.FaultXid}
	m.NICs[0].Health = machine.Health{Reason: machine.FaultLost}
	m.NICs[1].Health = machine.Health{Reason: machine.FaultLinkDown}
	for name, want := range map[string]string{
		"gpu-18-00": "xid", "gpu-19-00": "", "pair-18-00-15-00": "lost", "pair-19-00-15-00": "lost", "vf-15-00-0": "lost", "nic-25-00": "link-down", "rdma-25-00": "link-down",
	} {
		got := ""
		for _, taint := range published(m)[name].Taints {
			if taint.Key == catalog.TaintUnhealthy {
				got += taint.Value
			}
		}
		if got != want {
			t.Errorf("%s: taint %q, want %q", name, got, want)
		}
	}
}
