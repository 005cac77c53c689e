package machine

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// paired describes the pairs of a machine: "18-00+12-00 PIX 1/1", with lanes and rail.
func paired(m *Machine) []string {
	var got []string
	for _, d := range m.networkDevices(KindPair) {
		vf := ""
		if d.VF != nil {
			vf = fmt.Sprintf(" vf %d", d.VF.Index)
		}
		got = append(got, fmt.Sprintf("%s+%s %s lanes %d rail %d%s", d.GPU.Address.Label(), d.NIC.Address.Label(), d.Closeness, d.Lanes, m.Rail(d.NIC), vf))
	}
	return got
}

func TestPairs(t *testing.T) {
	for name, test := range map[string]struct {
		make func(*world)
		want []string
	}{
		"no NIC":  {func(w *world) { w.switches(2, 1, 0) }, nil},
		"no GPU":  {func(w *world) { w.switches(2, 0, 1) }, nil},
		"nothing": {func(*world) {}, nil},
		"each GPU with its NIC, as dgx-h100": {func(w *world) { w.switches(3, 1, 1) }, []string{
			"18-00+12-00 PIX lanes 1 rail 0", "28-00+22-00 PIX lanes 1 rail 1", "38-00+32-00 PIX lanes 1 rail 2"}},
		"two NICs a GPU, as dual-rail": {func(w *world) { w.switches(2, 1, 2) }, []string{
			"18-00+12-00 PIX lanes 1 rail 0", "18-00+13-00 PIX lanes 1 rail 1", "28-00+22-00 PIX lanes 1 rail 2", "28-00+23-00 PIX lanes 1 rail 3"}},
		"two GPUs a NIC, as hgx-4nic": {func(w *world) { w.switches(2, 2, 1) }, []string{
			"18-00+12-00 PIX lanes 2 rail 0", "19-00+12-00 PIX lanes 2 rail 0", "28-00+22-00 PIX lanes 2 rail 1", "29-00+22-00 PIX lanes 2 rail 1"}},
		"two of each a switch, as dgx-a100": {func(w *world) { w.switches(2, 2, 2) }, []string{
			"18-00+12-00 PIX lanes 1 rail 0", "19-00+13-00 PIX lanes 1 rail 1", "28-00+22-00 PIX lanes 1 rail 2", "29-00+23-00 PIX lanes 1 rail 3"}},
		"three NICs for two GPUs": {func(w *world) { w.switches(1, 2, 3) }, []string{
			"18-00+12-00 PIX lanes 1 rail 0", "18-00+13-00 PIX lanes 1 rail 1", "19-00+14-00 PIX lanes 1 rail 2"}},
		"two NICs for three GPUs": {func(w *world) { w.switches(1, 3, 2) }, []string{
			"18-00+12-00 PIX lanes 2 rail 0", "19-00+12-00 PIX lanes 2 rail 0", "1a-00+13-00 PIX lanes 1 rail 1"}},
		"other domains, as gb200": {func(w *world) {
			for numa := range 2 {
				w.nic(fmt.Sprintf("%04x:03:00.0", 0x10*numa), place(w, fmt.Sprintf("pci%04x:00", 0x10*numa), numa, fmt.Sprintf("%04x:00:00.0", 0x10*numa)))
				w.nic(fmt.Sprintf("%04x:03:00.0", 0x10*numa+2), place(w, fmt.Sprintf("pci%04x:00", 0x10*numa+2), numa, fmt.Sprintf("%04x:00:00.0", 0x10*numa+2)))
				w.gpu(fmt.Sprintf("%04x:01:00.0", 0x10*numa+8), place(w, fmt.Sprintf("pci%04x:00", 0x10*numa+8), numa, fmt.Sprintf("%04x:00:00.0", 0x10*numa+8)))
				w.gpu(fmt.Sprintf("%04x:01:00.0", 0x10*numa+9), place(w, fmt.Sprintf("pci%04x:00", 0x10*numa+9), numa, fmt.Sprintf("%04x:00:00.0", 0x10*numa+9)))
			}
		}, []string{
			"0008-01-00+03-00 NODE lanes 1 rail 0", "0009-01-00+0002-03-00 NODE lanes 1 rail 1",
			"0018-01-00+0010-03-00 NODE lanes 1 rail 2", "0019-01-00+0012-03-00 NODE lanes 1 rail 3"}},
		"one NIC near one of four GPUs, as xe8640": {func(w *world) {
			w.gpu("0000:18:00.0", w.behindSwitch(0, 0x16, 0)).nic("0000:1a:00.0", w.behindSwitch(0, 0x16, 1))
			for i, bus := range []string{"4a", "9a", "ca"} {
				w.gpu("0000:"+bus+":00.0", place(w, "pci0000:"+bus[:1]+"0", (i+1)/2, "0000:"+bus[:1]+"0:01.0"))
			}
		}, []string{
			"18-00+1a-00 PIX lanes 4 rail 0", "4a-00+1a-00 NODE lanes 4 rail 0", "9a-00+1a-00 SYS lanes 4 rail 0", "ca-00+1a-00 SYS lanes 4 rail 0"}},
		"a storage NIC is farther": {func(w *world) { w.switches(1, 1, 1).nic("0000:e1:00.0", place(w, "pci0000:e0", 0)) }, []string{
			"18-00+12-00 PIX lanes 1 rail 0"}},
		"flat VM": {func(w *world) { flat(w) }, []string{
			"05-00+01-00 PHB lanes 1 rail 0", "06-00+02-00 PHB lanes 1 rail 1"}},
		"flat VM, declared": {func(w *world) {
			flat(w)
			w.Network = Network{Pairs: []DeclaredPair{{at(w, "0000:05:00.0"), at(w, "0000:02:00.0")}, {at(w, "0000:06:00.0"), at(w, "0000:01:00.0")}},
				Rails: map[Address]int{at(w, "0000:01:00.0"): 1, at(w, "0000:02:00.0"): 0}}
		}, []string{"05-00+02-00 declared lanes 1 rail 0", "06-00+01-00 declared lanes 1 rail 1"}},
		"declared for one, twice": {func(w *world) {
			flat(w)
			pair := DeclaredPair{at(w, "0000:06:00.0"), at(w, "0000:01:00.0")}
			w.Network = Network{Pairs: []DeclaredPair{pair, pair}, Rails: map[Address]int{at(w, "0000:01:00.0"): 7}}
		}, []string{"06-00+01-00 declared lanes 1 rail 7", "05-00+02-00 PHB lanes 1 rail -1"}},
		"declared beside a nearer GPU": {func(w *world) {
			w.switches(2, 2, 1)
			w.Network.Pairs = []DeclaredPair{{at(w, "0000:28:00.0"), at(w, "0000:12:00.0")}}
		}, []string{"28-00+12-00 declared lanes 1 rail 0", "29-00+22-00 PIX lanes 1 rail 1"}},
		"MIG mode": {func(w *world) { w.switches(1, 2, 1).GPUs[0].MIG.Enabled = true }, []string{"19-00+12-00 PIX lanes 2 rail 0"}},
		"the uplink": {func(w *world) { w.switches(2, 1, 1).NICs[0].Withheld = "has the default route" }, []string{
			"28-00+22-00 PIX lanes 2 rail 0", "18-00+22-00 SYS lanes 2 rail 0"}},
		"Ethernet only": {func(w *world) { w.switches(1, 1, 1).NICs[0].RDMA = nil }, nil},
		"NUMA breaks a tie": {func(w *world) {
			w.gpu("0000:08:00.0", place(w, "pci0000:00", 0))
			w.nic("0000:01:00.0", place(w, "pci0000:00", -1)).nic("0000:02:00.0", place(w, "pci0000:00", 0))
		}, []string{"08-00+02-00 PHB lanes 1 rail 1"}},
		"VFs": {func(w *world) { w.switches(1, 2, 1).vfs(0, 4) }, []string{
			"18-00+12-00 PIX lanes 2 rail 0 vf 0", "19-00+12-00 PIX lanes 2 rail 0 vf 1"}},
		"a lane's VF withheld": {func(w *world) { w.switches(1, 3, 1).vfs(0, 6).NICs[0].VFs[1].Withheld = "vfio-pci has it" }, []string{
			"18-00+12-00 PIX lanes 3 rail 0 vf 0", "19-00+12-00 PIX lanes 3 rail 0 vf 3", "1a-00+12-00 PIX lanes 3 rail 0 vf 2"}},
		"fewer VFs than lanes": {func(w *world) { w.switches(1, 3, 1).vfs(0, 2) }, []string{
			"18-00+12-00 PIX lanes 3 rail 0 vf 0", "19-00+12-00 PIX lanes 3 rail 0 vf 1", "1a-00+12-00 PIX lanes 3 rail 0 vf 0"}},
		"no VF is of use": {func(w *world) { w.switches(1, 1, 2).vfs(0, 1).NICs[0].VFs[0].RDMA = nil }, []string{
			"18-00+13-00 PIX lanes 1 rail 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{TB: t}
			test.make(w)
			if got := paired(&w.Machine); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			sound(t, &w.Machine)
		})
	}
}

// sound checks what holds of every machine.
func sound(t *testing.T, m *Machine) {
	t.Helper()
	offered := slices.ContainsFunc(m.NICs, func(n NIC) bool { return n.Offered() })
	names := map[string]bool{}
	inPair := map[*GPU]bool{}
	lanes := map[*NIC]int{}
	for _, d := range m.Devices() {
		if names[d.Name] {
			t.Errorf("%s is there twice", d.Name)
		}
		names[d.Name] = true
		if found, ok := m.Device(d.Name); !ok || !reflect.DeepEqual(found, d) {
			t.Errorf("%s is found as %+v, %t", d.Name, found, ok)
		}
		if d.Kind.HasGPU() != (d.GPU != nil) || d.Kind.HasNIC() != (d.NIC != nil) || d.Kind.HasNIC() != (d.Lanes > 0) || (d.Kind == KindPair) != (d.Closeness != "") {
			t.Errorf("%s: %+v", d.Name, d)
		}
		if d.NIC != nil && (!d.NIC.Offered() || d.Lanes != m.Lanes(d.NIC)) {
			t.Errorf("%s: lanes %d, %d; %s", d.Name, d.Lanes, m.Lanes(d.NIC), d.NIC.WhyNot())
		}
		if d.NIC != nil && (d.VF == nil) != (len(d.NIC.VFs) == 0) || d.VF != nil && !d.VF.Offered() {
			t.Errorf("%s: VF %+v", d.Name, d.VF)
		}
		if d.Kind == KindPair {
			inPair[d.GPU] = true
			lanes[d.NIC]++
		}
	}
	for i := range m.GPUs {
		gpu := &m.GPUs[i]
		if offered && !gpu.MIG.Enabled && !inPair[gpu] && len(m.Network.Pairs) == 0 {
			t.Errorf("GPU %s is in no pair", gpu.Address)
		}
	}
	inMIGMode := slices.ContainsFunc(m.GPUs, func(g GPU) bool { return g.MIG.Enabled })
	for nic, pairs := range lanes {
		if all := m.Lanes(nic); pairs > all || pairs < all && !inMIGMode {
			t.Errorf("NIC %s: %d pairs, %d lanes", nic.Address, pairs, all)
		}
	}
}

// TestPairsOfAnyMachine: no GPU without a pair where there is a NIC, each lane is one
// GPU's, and what becomes of one GPU or NIC changes nobody else's.
func TestPairsOfAnyMachine(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		w := &world{TB: t}
		for s := range random.IntN(5) {
			upstream := 0x10 * (s + 1)
			for i := range random.IntN(5) {
				w.nic(fmt.Sprintf("0000:%02x:00.0", upstream+2+i), w.behindSwitch(random.IntN(3)-1, upstream, i))
			}
			for i := range random.IntN(5) {
				w.gpu(fmt.Sprintf("0000:%02x:00.0", upstream+8+i), w.behindSwitch(random.IntN(3)-1, upstream, 8+i))
			}
		}
		for i := range w.NICs {
			switch random.IntN(6) {
			case 0:
				w.NICs[i].Withheld = "uplink"
			case 1:
				w.vfs(i, 1+random.IntN(40))
				for j := range w.NICs[i].VFs {
					if random.IntN(4) == 0 {
						w.NICs[i].VFs[j].Withheld = "vfio-pci has it"
					}
				}
			}
		}
		sound(t, &w.Machine)
		before := paired(&w.Machine)
		for i := range w.GPUs {
			w.GPUs[i].Health = Health{Reason: FaultLost}
		}
		for i := range w.NICs {
			w.NICs[i].Away, w.NICs[i].Health = true, Health{Reason: FaultLinkDown}
		}
		if after := paired(&w.Machine); !slices.Equal(before, after) {
			t.Fatalf("sickness changes pairs: %q, then %q", before, after)
		}
		if len(w.GPUs) == 0 {
			continue
		}
		w.GPUs[random.IntN(len(w.GPUs))].MIG.Enabled = true
		for _, pair := range paired(&w.Machine) {
			if !slices.Contains(before, pair) {
				t.Fatalf("a GPU in MIG mode changes others' pairs: %q is not in %q", pair, before)
			}
		}
		sound(t, &w.Machine)
	}
}
