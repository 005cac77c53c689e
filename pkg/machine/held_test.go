package machine

import "testing"

// What is left of a held device is found by what it is of, and not by its name.
func TestRemnant(t *testing.T) {
	w := &world{TB: t}
	w.switches(2, 1, 1).vfs(1, 2)
	vf := w.NICs[1].VFs[1].Address
	gone := Address{Domain: 0xff}
	empty, removed := w.NICs[0].Address, vf
	removed.Bus = 0xee
	for name, test := range map[string]struct {
		held     Held
		left     bool
		gpu, nic bool // are there
		vf       bool
		health   FaultKind
	}{
		"a pair":              {Held{Kind: KindPair, GPU: w.GPUs[0].UUID, Function: w.NICs[0].Address}, true, true, true, false, ""},
		"its GPU gone":        {Held{Kind: KindPair, GPU: "gone", Function: w.NICs[0].Address}, true, false, true, false, FaultLost},
		"its NIC gone":        {Held{Kind: KindPair, GPU: w.GPUs[0].UUID, Function: gone}, true, true, false, false, FaultLost},
		"with a VF":           {Held{Kind: KindPair, GPU: w.GPUs[1].UUID, Function: vf}, true, true, true, true, ""},
		"both gone":           {Held{Kind: KindPair, GPU: "gone", Function: gone}, false, false, false, false, FaultLost},
		"a VF":                {Held{Kind: KindVF, Function: vf}, true, false, true, true, ""},
		"all VFs removed":     {Held{Kind: KindVF, Function: removed, NIC: empty}, true, false, false, true, FaultLost},
		"a pair's, likewise":  {Held{Kind: KindPair, GPU: w.GPUs[0].UUID, Function: removed, NIC: empty}, true, true, false, true, FaultLost},
		"that VF removed":     {Held{Kind: KindVF, Function: removed, NIC: w.NICs[1].Address}, false, false, false, false, FaultLost},
		"a GPU":               {Held{Kind: KindGPU, GPU: w.GPUs[0].UUID}, true, true, false, false, ""},
		"a partition":         {Held{Kind: KindMIG, GPU: w.GPUs[0].UUID}, true, true, false, false, ""},
		"of a kind not known": {Held{Kind: "share", GPU: w.GPUs[0].UUID}, false, false, false, false, ""},
	} {
		test.held.Name = "held"
		d, left := w.Remnant(test.held)
		if left != test.left {
			t.Errorf("%s: left: %t", name, left)
			continue
		}
		if !left {
			continue
		}
		gpu := d.GPU != nil && d.GPU.Health.OK()
		nic := d.NIC != nil && d.NIC.Health.OK()
		if gpu != test.gpu || nic != test.nic || (d.VF != nil) != test.vf || d.Health().Reason != test.health || d.Name != "held" ||
			d.Kind.HasGPU() != (d.GPU != nil) || d.Kind.HasNIC() != (d.NIC != nil) || d.Kind.HasNIC() != (d.Lanes > 0) || (d.Kind == KindPair && gpu && nic) != (d.Closeness != "") {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if d, _ := w.Remnant(Held{Name: "held", Kind: KindPair, GPU: "gone", Function: w.NICs[0].Address}); d.GPU.Location.NUMANode != -1 {
		t.Errorf("a GPU that is gone is on NUMA node %d", d.GPU.Location.NUMANode)
	}
	w.NICs[0].Withheld = "it has the default route"
	if d, left := w.Remnant(Held{Kind: KindNIC, Function: w.NICs[0].Address}); left {
		t.Errorf("of a NIC that is withheld nobody gets anything anyway: %+v", d)
	}
}
