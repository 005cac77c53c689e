package machine

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// roce is a NIC at home.
func roce(bus uint8) NIC {
	return NIC{
		Address: Address{Bus: bus}, Vendor: "NVIDIA", Driver: "mlx5_core",
		Netdevs:  []Netdev{{Name: "eth0", MAC: "b8:3f:d2:00:00:01", MTU: 4200, Up: true, Carrier: true, Speed: 400000}},
		RDMA:     &RDMADevice{Name: "mlx5_0", Ports: []RDMAPort{{Number: 1, State: PortActive, Rate: 400}}},
		DCB:      DCB{PFC: [8]bool{3: true}, Trust: TrustDSCP},
		Location: Location{PCIeRoot: "pci0000:17", NUMANode: -1},
	}
}

// away is what a look tells of a NIC whose parts are in another network namespace.
func away(n NIC) NIC {
	return NIC{Address: n.Address, Driver: n.Driver, Location: n.Location, Away: true}
}

func TestMergeNICs(t *testing.T) {
	a, b := roce(1), roce(2)
	withheld := roce(3)
	withheld.Withheld = "it has the default route"
	before := Machine{BootID: "1", NICs: []NIC{a, b, withheld}}
	downA := a
	downA.Netdevs = []Netdev{{Name: "eth0"}}
	downA.Health = Health{Reason: FaultLinkDown, Message: "down"}
	awayA := a
	awayA.Away = true
	awayDown := away(a)
	awayDown.Health = downA.Health
	awayADown := awayA
	awayADown.Health = downA.Health
	lost := func(n NIC, h Health) NIC { n.Health = h; return n }
	gone := Health{Reason: FaultLost, Message: "NIC 0000:01:00.0 is no longer on the PCI bus: reboot the node, and look at the card if it does not come back"}

	unbound, vfio := a, a
	unbound.Driver, unbound.RDMA, unbound.Netdevs, unbound.Withheld = "", nil, nil, "no driver is bound to it"
	vfio.Driver, vfio.RDMA, vfio.Netdevs, vfio.Withheld = "vfio-pci", nil, nil, "vfio-pci is bound to it"
	reloaded := Health{FaultLost, "NIC 0000:01:00.0 has lost its RDMA device, as when its driver is loaded anew: " +
		"look for the driver's messages in the kernel's log, and at the card if it does not come back"}

	for name, test := range map[string]struct {
		now  Machine
		want []NIC
	}{
		"its driver is loaded anew": {Machine{BootID: "1", NICs: []NIC{unbound, b}}, []NIC{lost(a, reloaded), b}},
		"another driver takes it":   {Machine{BootID: "1", NICs: []NIC{vfio, b}}, []NIC{vfio, b}},

		"as before":             {before, before.NICs},
		"another link":          {Machine{BootID: "1", NICs: []NIC{downA, b}}, []NIC{downA, b}},
		"away":                  {Machine{BootID: "1", NICs: []NIC{away(a), b}}, []NIC{awayA, b}},
		"away, and its link":    {Machine{BootID: "1", NICs: []NIC{awayDown, b}}, []NIC{awayADown, b}},
		"gone":                  {Machine{BootID: "1", NICs: []NIC{b}}, []NIC{lost(a, gone), b}},
		"gone, with a reason":   {Machine{BootID: "1", NICs: []NIC{b}, Faults: []Fault{{a.Address.String(), FaultUnreadable, "no"}}}, []NIC{lost(a, Health{FaultUnreadable, "no"}), b}},
		"what is not offered":   {Machine{BootID: "1", NICs: []NIC{a, b}}, []NIC{a, b}},
		"another boot":          {Machine{BootID: "2", NICs: []NIC{away(a)}}, []NIC{away(a)}},
		"another NVIDIA driver": {Machine{BootID: "1", Driver: Driver{Version: "580"}, NICs: []NIC{away(a), b}}, []NIC{awayA, b}},
		"not to be listed":      {Machine{BootID: "1", Faults: []Fault{{AllNICs, FaultUnreadable, "no netlink"}}}, before.NICs},
		"a new one":             {Machine{BootID: "1", NICs: []NIC{roce(0), a, b}}, []NIC{roce(0), a, b}},
	} {
		t.Run(name, func(t *testing.T) {
			again := test.now
			again.NICs = slices.Clone(test.now.NICs)
			merged := Merge(before, test.now)
			if !reflect.DeepEqual(merged.NICs, test.want) {
				t.Errorf("got  %+v\nwant %+v", merged.NICs, test.want)
			}
			if twice := Merge(merged, test.now); !twice.Equal(&merged) {
				t.Errorf("a second look changes it: %+v", twice.NICs)
			}
			if !again.Equal(&test.now) {
				t.Error("Merge changed what it was given")
			}
		})
	}
	if back := Merge(Merge(before, Machine{BootID: "1", NICs: []NIC{away(a)}}), before); !back.Equal(&before) {
		t.Errorf("back home: %+v", back.NICs)
	}
}

// offeredNames are the devices with NICs.
func offeredNames(m *Machine) []string {
	var names []string
	for _, d := range m.Devices() {
		if d.Kind.HasNIC() {
			names = append(names, d.Name)
		}
	}
	return names
}

// What is in a Pod stays published, also where the look tells nothing of it.
func TestAwayStaysOffered(t *testing.T) {
	a := roce(1)
	a.VFs = []VF{
		{Index: 0, Address: Address{Bus: 1, Function: 1}, RDMA: &RDMADevice{Name: "mlx5_2"}, Netdevs: []Netdev{{Name: "eth0v0", MTU: 9000}}},
		{Index: 1, Address: Address{Bus: 1, Function: 2}, RDMA: &RDMADevice{Name: "mlx5_3"}},
	}
	b := roce(2)
	before := Machine{BootID: "1", NICs: []NIC{a, b}}
	now := Machine{BootID: "1", NICs: []NIC{a, away(b)}}
	now.NICs[0].VFs = []VF{{Index: 0, Address: a.VFs[0].Address, Away: true}, a.VFs[1]}

	merged := Merge(before, now)
	if got, want := offeredNames(&merged), offeredNames(&before); !slices.Equal(got, want) || len(want) != 4 {
		t.Errorf("offered: %q, before: %q", got, want)
	}
	want := a.VFs[0]
	want.Away = true
	if got := merged.NICs[0].VFs; !reflect.DeepEqual(got, []VF{want, a.VFs[1]}) {
		t.Errorf("VFs: %+v", got)
	}

	restarted := Merge(Machine{}, now)
	if got := offeredNames(&restarted); !slices.Equal(got, []string{"vf-01-00-1"}) {
		t.Errorf("without a record, offered: %q", got)
	}
	restarted.Recall([]Reserved{{a.VFs[0].Address, a}, {b.Address, b}})
	if !restarted.Equal(&merged) {
		t.Errorf("after a restart:\n%+v, want\n%+v", restarted.NICs, merged.NICs)
	}
	recalled := now
	recalled.Recall([]Reserved{{a.VFs[0].Address, a}, {b.Address, b}})
	if other := Merge(before, recalled); !other.Equal(&merged) {
		t.Errorf("recalled first: %+v", other.NICs)
	}
	if now.NICs[1].RDMA != nil {
		t.Error("Recall changed what it was not given")
	}
}

// VFs that somebody makes on a NIC that a claim has as a whole are nobody's to get, and the
// NIC stays what it was.
func TestVFsMadeUnderAClaim(t *testing.T) {
	a := roce(1)
	before := Machine{BootID: "1", NICs: []NIC{a}}
	now := Machine{BootID: "1", NICs: []NIC{away(a)}}
	now.NICs[0].VFs = []VF{{Index: 0, Address: Address{Bus: 1, Function: 1}, RDMA: &RDMADevice{Name: "mlx5_2"}}}
	merged := Merge(before, now)
	held := []Held{{Kind: KindNIC, Function: a.Address}}
	merged.Recall([]Reserved{{a.Address, a}})
	if !merged.WithholdVFs(held) {
		t.Error("it is not said that there are VFs")
	}
	if got, want := offeredNames(&merged), offeredNames(&before); !slices.Equal(got, want) {
		t.Errorf("offered: %q, before: %q", got, want)
	}
	now.Recall([]Reserved{{a.Address, a}})
	now.WithholdVFs(held)
	if other := Merge(before, now); !other.Equal(&merged) {
		t.Errorf("recalled first: %+v", other.NICs)
	}
}

// What somebody else has taken is not handed out, and changes nobody else's place.
func TestTakenByOthers(t *testing.T) {
	a, b := roce(1), roce(2)
	b.VFs = []VF{{Index: 0, Address: Address{Bus: 2, Function: 1}, RDMA: &RDMADevice{Name: "mlx5_2"}}, {Index: 1, Address: Address{Bus: 2, Function: 2}, RDMA: &RDMADevice{Name: "mlx5_3"}}}
	now := Machine{BootID: "1", NICs: []NIC{away(a), b}}
	now.NICs[1].VFs = []VF{b.VFs[0], {Index: 1, Address: b.VFs[1].Address, Away: true}}
	before := Machine{BootID: "1", NICs: []NIC{a, b}}
	merged := Merge(before, now)
	merged.Recall(nil)
	now.Recall(nil)
	if other := Merge(before, now); !other.Equal(&merged) {
		t.Errorf("recalled first: %+v", other.NICs)
	}
	if h := merged.NICs[0].Health; h.Reason != FaultTaken || h.Usable() || !strings.Contains(h.Message, "NIC 0000:01:00.0 is in another network namespace") {
		t.Errorf("the NIC: %+v", h)
	}
	if vf := merged.NICs[1].VFs[1]; vf.Offered() || !strings.HasPrefix(vf.Withheld, "0000:02:00.2 is in another network namespace") {
		t.Errorf("the VF: %+v", vf)
	}
	if got := offeredNames(&merged); !slices.Equal(got, []string{"nic-01-00", "rdma-01-00", "vf-02-00-0"}) {
		t.Errorf("offered: %q", got)
	}
	if back := Merge(merged, before); !back.Equal(&before) {
		t.Errorf("back: %+v", back.NICs)
	}
}

func TestWithoutDriver(t *testing.T) {
	away := roce(1)
	away.Netdevs, away.RDMA, away.Away = nil, nil, true
	fault := func(device string) Fault { return Fault{Device: device, Kind: FaultUnreadable} }
	before := Machine{BootID: "1", GPUs: []GPU{{UUID: "a"}}, NICs: []NIC{roce(1)}, Faults: []Fault{fault("0000:51:00.0"), fault(roce(1).Address.String()), fault(AllNICs)}}
	for range 2 {
		without := WithoutDriver(before, Machine{BootID: "1", NICs: []NIC{away}, Faults: []Fault{fault(AllNICs)}}, "unloaded")
		if len(without.GPUs) != 1 || without.GPUs[0].Health.Message != "unloaded" {
			t.Errorf("GPUs: %+v", without.GPUs)
		}
		if len(without.NICs) != 1 || without.NICs[0].RDMA == nil || !without.NICs[0].Health.OK() {
			t.Errorf("NICs: %+v", without.NICs)
		}
		if want := []Fault{fault(AllNICs), fault("0000:51:00.0")}; !slices.Equal(without.Faults, want) {
			t.Errorf("faults: %+v", without.Faults)
		}
		before = without
	}
}

func TestReread(t *testing.T) {
	without, withVFs, slow := roce(1), roce(1), roce(1)
	without.RDMA = nil
	mac, speed := roce(1).Netdevs[0].MAC, roce(1).Netdevs[0].Speed
	withoutLink, coming := roce(1), roce(1)
	withoutLink.Netdevs = []Netdev{{Name: "renamed", MAC: mac}}
	coming.Netdevs = []Netdev{{Name: "eth0", MAC: mac, Up: true, Carrier: true}}
	withSpeed := func(n NIC) NIC {
		n.Netdevs = slices.Clone(n.Netdevs)
		n.Netdevs[0].Speed = speed
		return n
	}
	withVFs.VFs = []VF{{Address: Address{Bus: 1, Function: 1}, RDMA: withVFs.RDMA}}
	slow.Netdevs = []Netdev{{Name: "slow", Speed: 10}}
	for name, c := range map[string]struct {
		read NIC
		want NIC
	}{
		"changed":             {slow, slow},
		"without a link":      {withoutLink, withSpeed(withoutLink)},
		"link just up":        {coming, withSpeed(coming)},
		"in a Pod":            {away(slow), roce(1)},
		"offered no more":     {without, roce(1)},
		"with VFs by now":     {withVFs, roce(1)},
		"not of this machine": {roce(9), roce(1)},
	} {
		t.Run(name, func(t *testing.T) {
			m := Machine{NICs: []NIC{roce(1), roce(2)}}
			got := m.Reread([]NIC{c.read})
			if want := []NIC{c.want, roce(2)}; !reflect.DeepEqual(got.NICs, want) {
				t.Errorf("it has %+v, want %+v", got.NICs, want)
			}
			if !reflect.DeepEqual(m.NICs, []NIC{roce(1), roce(2)}) {
				t.Error("the machine as it was seen has changed")
			}
		})
	}
}
