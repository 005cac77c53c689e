package catalog_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// forClaims describes what is published otherwise than without claims: "pair-1b-00-18-00:
// nic-18-00 lanes=1, leaving unhealthy=lost".
func forClaims(without, with catalog.Pool) []string {
	var found []string
	for i, d := range with.Devices {
		var parts []string
		for _, c := range d.ConsumesCounters {
			parts = append(parts, c.CounterSet)
			for _, name := range []string{"lanes", "vf-0", "vf-1", "memory-unit-3"} {
				_, whole := c.Counters["memory-unit-0"]
				if n, some := c.Counters[name]; some && !whole {
					parts = append(parts, fmt.Sprintf("%s=%s", name, n.Value.String()))
				}
			}
		}
		for _, taint := range d.Taints {
			parts = append(parts, strings.TrimSuffix(strings.TrimPrefix(taint.Key, "dovetail.dev/")+"="+taint.Value, "="))
		}
		text := d.Name + ": " + strings.Join(parts, " ")
		same := func(other resourceapi.Device) bool {
			return equality.Semantic.DeepEqual(other.ConsumesCounters, d.ConsumesCounters) && slices.Equal(other.Taints, d.Taints)
		}
		if i >= len(without.Devices) || !same(without.Devices[i]) {
			found = append(found, text)
		}
	}
	return found
}

// TestHeld: what claims have is counted, however the machine looks by now.
func TestHeld(t *testing.T) {
	address := func(text string) machine.Address {
		a, err := machine.ParseAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	withoutGPU := func(label string) func(*machine.Machine) {
		return func(m *machine.Machine) {
			m.GPUs = slices.DeleteFunc(slices.Clone(m.GPUs), func(g machine.GPU) bool { return g.Name() == "gpu-"+label })
		}
	}
	withoutNIC := func(label string) func(*machine.Machine) {
		return func(m *machine.Machine) {
			m.NICs = slices.DeleteFunc(slices.Clone(m.NICs), func(n machine.NIC) bool { return n.Name() == "nic-"+label })
		}
	}
	withoutVFs := func(m *machine.Machine) {
		for i := range m.NICs {
			m.NICs[i].VFs = nil
		}
	}
	asItWas := func(*machine.Machine) {}
	machines := map[string]machine.Machine{}
	for _, name := range []string{"dgx-h100", "hgx-4nic", "sriov"} {
		machines[name] = simulatortest.Describe(t, name)
	}
	names := attributeNames{}
	for name, test := range map[string]struct {
		machine string
		kind    machine.Kind
		device  string
		gpu     string // label
		nic     string // function
		pf      string // its NIC's, of a VF
		alone   bool
		change  func(*machine.Machine)
		want    []string
	}{
		"nothing has changed": {machine: "dgx-h100", kind: machine.KindPair, device: "pair-1b-00-18-00", gpu: "1b-00", nic: "0000:18:00.0", alone: true, change: asItWas},
		"a pair's GPU is gone": {machine: "dgx-h100", kind: machine.KindPair, device: "pair-1b-00-18-00", gpu: "1b-00", nic: "0000:18:00.0", alone: true, change: withoutGPU("1b-00"),
			want: []string{"pair-1b-00-18-00: nic-18-00 lanes=1 unhealthy=lost leaving"}},
		"a pair's NIC is gone": {machine: "dgx-h100", kind: machine.KindPair, device: "pair-1b-00-18-00", gpu: "1b-00", nic: "0000:18:00.0", alone: true, change: withoutNIC("18-00"),
			want: []string{"pair-1b-00-18-00: gpu-1b-00 unhealthy=lost leaving"}},
		"a pair's VF is gone": {machine: "sriov", kind: machine.KindPair, device: "pair-1b-00-18-00", gpu: "1b-00", nic: "0000:18:1f.7", alone: true, change: withoutNIC("18-00"),
			want: []string{"pair-1b-00-18-00: gpu-1b-00 unhealthy=lost leaving"}},
		"both are gone": {machine: "dgx-h100", kind: machine.KindPair, device: "pair-1b-00-18-00", gpu: "1b-00", nic: "0000:18:00.0", alone: true,
			change: func(m *machine.Machine) { withoutGPU("1b-00")(m); withoutNIC("18-00")(m) }},
		"a GPU is gone":          {machine: "dgx-h100", kind: machine.KindGPU, device: "gpu-1b-00", gpu: "1b-00", change: withoutGPU("1b-00")},
		"a GPU's share is gone":  {machine: "dgx-h100", kind: machine.KindMPS, device: "mps-1b-00", gpu: "1b-00", change: withoutGPU("1b-00")},
		"a partition is gone":    {machine: "dgx-h100", kind: machine.KindMIG, device: "mig-1b-00-1g10gb-0", gpu: "1b-00", change: withoutGPU("1b-00")},
		"a device of other days": {machine: "dgx-h100", device: "gpu-1b-00", gpu: "1b-00", change: withoutGPU("1b-00")},
		"a GPU is in MIG mode": {machine: "dgx-h100", kind: machine.KindGPU, device: "gpu-1b-00", gpu: "1b-00", change: func(m *machine.Machine) { m.GPUs[0].MIG.Enabled = true },
			want: []string{"gpu-1b-00: gpu-1b-00 leaving"}},
		"a shared GPU is in MIG mode": {machine: "dgx-h100", kind: machine.KindTimeSlice, device: "timeslice-1b-00", gpu: "1b-00", change: func(m *machine.Machine) { m.GPUs[0].MIG.Enabled = true },
			want: []string{"timeslice-1b-00: gpu-1b-00 leaving"}},
		"a NIC alone, where there are lanes now": {machine: "hgx-4nic", kind: machine.KindPair, device: "pair-19-00-18-00", gpu: "19-00", nic: "0000:18:00.0", alone: true, change: asItWas,
			want: []string{"pair-19-00-18-00: gpu-19-00 nic-18-00 lanes=2"}},
		"a pair has another VF": {machine: "sriov", kind: machine.KindPair, device: "pair-1b-00-18-00", gpu: "1b-00", nic: "0000:18:00.2", pf: "0000:18:00.0", alone: true, change: asItWas,
			want: []string{"pair-1b-00-18-00: gpu-1b-00 nic-18-00 vf-1=1 leaving"}},
		"a pair's VF was removed": {machine: "sriov", kind: machine.KindPair, device: "pair-1b-00-18-00", gpu: "1b-00", nic: "0000:18:00.1", pf: "0000:18:00.0", alone: true, change: withoutVFs,
			want: []string{"pair-1b-00-18-00: gpu-1b-00 nic-18-00 lanes=1 unhealthy=lost leaving"}},
		"a VF was removed": {machine: "sriov", kind: machine.KindVF, device: "vf-18-00-0", nic: "0000:18:00.1", pf: "0000:18:00.0", alone: true, change: withoutVFs,
			want: []string{"vf-18-00-0: nic-18-00 lanes=1 unhealthy=lost leaving"}},
		"a NIC has VFs now": {machine: "sriov", kind: machine.KindRDMA, device: "rdma-18-00", nic: "0000:18:00.0", change: asItWas,
			want: []string{"rdma-18-00: leaving"}},
		"a partition of a GPU that has none any more": {machine: "dgx-h100", kind: machine.KindMIG, device: "mig-1b-00-1g10gb-3", gpu: "1b-00", change: func(m *machine.Machine) { m.GPUs[0].MIG.OnDemand = false },
			want: []string{"mig-1b-00-1g10gb-3: gpu-1b-00 memory-unit-3=1 leaving"}},
		"a lane": {machine: "hgx-4nic", kind: machine.KindPair, device: "pair-19-00-18-00", gpu: "19-00", nic: "0000:18:00.0", change: withoutGPU("19-00"),
			want: []string{"pair-19-00-18-00: nic-18-00 lanes=1 unhealthy=lost leaving"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := machines[test.machine]
			names.same(t, catalog.Build(m, catalog.Options{}))
			held := machine.Held{Name: test.device, Kind: test.kind, Alone: test.alone}
			for _, gpu := range m.GPUs {
				if gpu.Name() == "gpu-"+test.gpu {
					held.GPU = gpu.UUID
				}
			}
			if test.kind == machine.KindMIG {
				held.Placement = machine.Placement{Start: 3, Size: 1}
			}
			if test.nic != "" {
				held.Function, held.NIC = address(test.nic), address(cmp.Or(test.pf, test.nic))
			}
			m.GPUs, m.NICs = slices.Clone(m.GPUs), slices.Clone(m.NICs)
			test.change(&m)
			with, without := catalog.Build(m, catalog.Options{Held: []machine.Held{held, held}}), catalog.Build(m, catalog.Options{})
			if got := forClaims(without, with); !slices.Equal(got, test.want) {
				t.Errorf("for claims: %q\nwant %q", got, test.want)
			}
			if with.ForClaims != (len(test.want) > 0) || without.ForClaims {
				t.Errorf("for claims: %t, without any: %t", with.ForClaims, without.ForClaims)
			}
			withinLimits(t, with.Slices())
			unique(t, with)
			names.same(t, with)
			policies(t, with)
		})
	}
}
