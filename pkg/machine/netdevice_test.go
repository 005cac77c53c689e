package machine

import (
	"slices"
	"testing"
)

func TestOrderWithNICs(t *testing.T) {
	w := (&world{TB: t}).switches(2, 1, 1)
	w.vfs(1, 3)
	w.GPUs[0].ComputeCapability, w.GPUs[0].MIG = Version{9, 0}, MIG{OnDemand: true, Profiles: []MIGProfile{{Name: "1g.10gb", ComputeSlices: 1, Placements: []Placement{{0, 1}}}}}
	var got []string
	for _, d := range w.Devices() {
		got = append(got, d.Name)
	}
	want := []string{
		"nic-12-00", "rdma-12-00", "pair-18-00-12-00", "pair-28-00-22-00", "gpu-18-00", "gpu-28-00",
		"mps-18-00", "timeslice-18-00", "timeslice-28-00", "vf-22-00-2", "vf-22-00-1", "vf-22-00-0",
		"mig-18-00-1g10gb-0", "monitor-18-00", "monitor-28-00",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// VFs that pairs need are the last that go alone.
func TestVFsThatPairsNeedComeLast(t *testing.T) {
	w := (&world{TB: t}).switches(2, 2, 1)
	w.vfs(0, 3).vfs(1, 3)
	var got []string
	for _, d := range w.networkDevices(KindVF) {
		got = append(got, d.Name)
	}
	if want := []string{"vf-12-00-2", "vf-22-00-2", "vf-12-00-1", "vf-12-00-0", "vf-22-00-1", "vf-22-00-0"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Where an RDMA device belongs to one network namespace, nothing is offered whose RDMA
// device would stay with the host.
func TestExclusiveRDMA(t *testing.T) {
	w := (&world{TB: t}).switches(3, 2, 1) // two GPUs share each NIC
	w.GPUs = w.GPUs[:5]                    // but for the last
	w.vfs(1, 2)
	names := func() (names []string) {
		for _, d := range w.Devices() {
			if d.NIC != nil {
				names = append(names, d.Name)
			}
		}
		return names
	}
	shared := []string{
		"nic-12-00", "nic-32-00", "rdma-12-00", "rdma-32-00",
		"pair-18-00-12-00", "pair-19-00-12-00", "pair-28-00-22-00", "pair-29-00-22-00", "pair-38-00-32-00", "vf-22-00-1", "vf-22-00-0",
	}
	if got := names(); !slices.Equal(got, shared) {
		t.Errorf("shared:\ngot  %q\nwant %q", got, shared)
	}
	w.RDMAExclusive = true
	exclusive := []string{"nic-12-00", "nic-32-00", "pair-28-00-22-00", "pair-29-00-22-00", "pair-38-00-32-00", "vf-22-00-1", "vf-22-00-0"}
	if got := names(); !slices.Equal(got, exclusive) {
		t.Errorf("exclusive:\ngot  %q\nwant %q", got, exclusive)
	}
	for _, name := range shared {
		if _, ok := w.Device(name); ok != slices.Contains(exclusive, name) {
			t.Errorf("%s: %t", name, ok)
		}
	}
}

func TestMoves(t *testing.T) {
	w := (&world{TB: t}).switches(1, 2, 1).gpu("0000:58:00.0", Location{NUMANode: -1})
	w.Network.Pairs = []DeclaredPair{{at(t, "0000:58:00.0"), at(t, "0000:62:00.0")}, {at(t, "0000:58:00.0"), at(t, "0000:63:00.0")}}
	w.nic("0000:62:00.0", Location{NUMANode: -1}).nic("0000:63:00.0", Location{NUMANode: -1})
	w.vfs(2, 1)
	for name, want := range map[string]bool{
		"nic-12-00": true, "rdma-12-00": false, "vf-63-00-0": true, "pair-18-00-12-00": false, "pair-58-00-62-00": true,
		"pair-58-00-63-00": true, "gpu-18-00": false,
	} {
		d, ok := w.Device(name)
		if !ok || d.Moves() != want {
			t.Errorf("%s: %t, %t", name, ok, d.Moves())
		}
	}
	if vf, _ := w.Device("pair-58-00-63-00"); vf.Function() != w.NICs[2].VFs[0].Address || vf.RDMA().Name != "mlx5_v2_0" {
		t.Errorf("the pair with a VF gives %s, %+v", vf.Function(), vf.RDMA())
	}
}

func TestLongestNetworkNames(t *testing.T) {
	last := Address{Domain: 0xffffffff, Bus: 0xff, Device: 0x1f, Function: 7}
	gpu := last
	gpu.Function = 6
	var m Machine
	m.GPUs = []GPU{{Address: gpu}}
	m.NICs = []NIC{{Address: last, RDMA: &RDMADevice{}, VFs: []VF{{Index: 65535, RDMA: &RDMADevice{}}}}}
	for _, d := range m.Devices() {
		if len(d.Name) > 63 {
			t.Errorf("%s has %d characters", d.Name, len(d.Name))
		}
	}
}

func TestHealthOfPairs(t *testing.T) {
	down, lost := Health{Reason: FaultLinkDown, Message: "down"}, Health{Reason: FaultLost, Message: "lost"}
	xid := Health{Reason: FaultXid, Message: "xid"}
	for _, test := range []struct{ gpu, nic, want Health }{
		{}, {gpu: xid, want: xid}, {nic: down, want: down}, {xid, down, xid}, {xid, lost, lost}, {lost, down, lost},
	} {
		d := Device{Kind: KindPair, GPU: &GPU{Health: test.gpu}, NIC: &NIC{Health: test.nic}}
		if got := d.Health(); got != test.want {
			t.Errorf("%+v and %+v: %+v", test.gpu, test.nic, got)
		}
	}
	if d := (Device{Kind: KindNIC, NIC: &NIC{Health: down}}); d.Health() != down {
		t.Errorf("a NIC: %+v", d.Health())
	}
}

func TestBandwidth(t *testing.T) {
	for name, test := range map[string]struct {
		nic  NIC
		want int64
	}{
		"Ethernet":   {NIC{Netdevs: []Netdev{{Speed: 400000}}, RDMA: &RDMADevice{Ports: []RDMAPort{{State: PortActive, Rate: 400}}}}, 400e9},
		"two ports":  {NIC{Netdevs: []Netdev{{Speed: 40000}, {Speed: 10000}}}, 50e9},
		"InfiniBand": {NIC{RDMA: &RDMADevice{Ports: []RDMAPort{{State: PortActive, Rate: 400}}}}, 400e9},
		"link down":  {NIC{Netdevs: []Netdev{{}}, RDMA: &RDMADevice{Ports: []RDMAPort{{State: "DOWN", Rate: 40}}}}, 0},
		"unknown":    {NIC{}, 0},
	} {
		if got := test.nic.Bandwidth(); got != test.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}
