package rdma_test

import (
	"bytes"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// mirrored is a kernel in memory with the interfaces that a simulated machine has on its
// host.
func mirrored(t *testing.T, m *simulatortest.Machine) *kerneltest.Kernel {
	t.Helper()
	state, err := m.State()
	must(t, err)
	k := kerneltest.New()
	bonds := map[string]int{}
	for _, f := range state.Functions() {
		spec := f.NIC.Spec
		if bond := spec.Bond; bond != "" && bonds[bond] == 0 {
			bonds[bond] = k.AddLink(kerneltest.HostPath, kernel.Link{Name: bond, Kind: "bond"})
		}
		for i, d := range f.Netdevs {
			if d.Namespace != "" {
				continue
			}
			index := k.AddLink(kerneltest.HostPath, kernel.Link{
				Name: d.Name, MAC: d.MAC, MTU: d.MTU, MaxMTU: f.NIC.Model.MaxMTU, Master: bonds[spec.Bond],
			})
			if f.VF < 0 && i == 0 && f.NIC.DCB.Trust != "" {
				k.HasDCB(kerneltest.HostPath, d.Name, f.NIC.DCB)
			}
			host, err := k.Host()
			must(t, err)
			must(t, host.SetUp(index, d.Up))
			if spec.Uplink && f.VF < 0 && i == 0 {
				must(t, host.AddRoute(index, machine.Route{To: "0.0.0.0/0"}))
			}
			must(t, host.Close())
			k.SetCarrier(kerneltest.HostPath, d.Name, f.Carrier(d))
		}
		if f.RDMAVisible() {
			k.AddRDMA(kerneltest.HostPath, f.RDMA)
		}
	}
	return k
}

// words are for people, and each implementation has its own: only whether there are any
// is compared.
func words(d hardware.NICDescription) hardware.NICDescription {
	said := func(text *string) {
		if *text != "" {
			*text = "…"
		}
	}
	for i := range d.NICs {
		n := &d.NICs[i]
		said(&n.Withheld)
		said(&n.Health.Message)
		for j := range n.VFs {
			said(&n.VFs[j].Withheld)
		}
	}
	return d
}

func same(t *testing.T, m *simulatortest.Machine) {
	t.Helper()
	want, err := m.NICs().DescribeNICs(t.Context())
	must(t, err)
	k := mirrored(t, m)
	k.SetExclusive(want.RDMAExclusive)
	nics := rdma.New(rdma.Options{SysfsRoot: filepath.Join(m.Root(), "sys"), Kernel: k})
	got, err := nics.DescribeNICs(t.Context())
	must(t, err)
	want, got = words(want), words(got)
	if len(got.NICs) != len(want.NICs) {
		t.Fatalf("%d NICs, want %d", len(got.NICs), len(want.NICs))
	}
	for i := range got.NICs {
		if !reflect.DeepEqual(got.NICs[i], want.NICs[i]) {
			t.Errorf("NIC %s is described as\n%+v, want\n%+v", got.NICs[i].Address, got.NICs[i], want.NICs[i])
		}
	}
	got.NICs, want.NICs = nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("described are\n%+v, want\n%+v", got, want)
	}
}

// TestSimulatedMachines: of each machine with NICs the adapter sees in its tree what the machine says
// of itself.
func TestSimulatedMachines(t *testing.T) {
	for _, name := range machines.Names() {
		if data, err := machines.Description(name); err != nil || !bytes.Contains(data, []byte("\nnics:")) {
			must(t, err)
			continue
		}
		t.Run(name, func(t *testing.T) { same(t, simulatortest.New(t, name)) })
	}
}

// TestSimulatedChanges: so it is after each thing that can happen to a NIC.
func TestSimulatedChanges(t *testing.T) {
	m := simulatortest.New(t, "sriov")
	nic := m.Spec().NICs[1]
	home, err := m.NICs().NICHome(t.Context(), nic.Address)
	must(t, err)
	move := func(exclusive bool) func() error {
		return func() error {
			if err := m.SetRDMAExclusive(exclusive); err != nil {
				return err
			}
			return m.MoveNIC(hardware.NICMove{Home: home, Name: "net1"}, pod)
		}
	}
	bring := func() error { return m.NICs().BringHome(t.Context(), home) }
	for _, change := range []struct {
		what string
		do   func() error
	}{
		{"cable out", func() error { return m.SetLink(nic.Address.String(), false) }},
		{"cable in", func() error { return m.SetLink(nic.Address.String(), true) }},
		{"moved", move(false)},
		{"its namespace has ended", func() error { return m.EndNamespace(pod) }},
		{"brought home", bring},
		{"moved with its RDMA device", move(true)},
		{"brought home with it", bring},
		{"virtual functions", func() error { return m.NICs().SetVFs(t.Context(), nic.Address, 3) }},
		{"none again", func() error { return m.NICs().SetVFs(t.Context(), nic.Address, 0) }},
		{"unplugged", func() error { return m.Unplug(nic.Address.String()) }},
		{"plugged in", func() error { return m.Plug(nic.Address.String()) }},
	} {
		must(t, change.do())
		t.Run(change.what, func(t *testing.T) { same(t, m) })
	}
}
