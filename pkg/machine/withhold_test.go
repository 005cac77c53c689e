package machine

import (
	"slices"
	"testing"
)

// VFs that somebody makes of a NIC that a claim has are not handed out, whether or not the
// claim has it in its Pod.
func TestWithholdVFs(t *testing.T) {
	w := &world{TB: t}
	w.switches(3, 1, 1)
	before := offeredNames(&w.Machine)
	w.vfs(0, 2).vfs(1, 2)
	own := w.NICs[1].VFs[0].Address
	now := w.Machine
	held := []Held{{Name: "rdma", Kind: KindRDMA, Function: w.NICs[0].Address}, {Name: "vf", Kind: KindVF, Function: own, NIC: w.NICs[1].Address}}
	if !now.WithholdVFs(held) || len(now.NICs[0].VFs) != 0 || len(now.NICs[1].VFs) != 2 {
		t.Errorf("%+v", now.NICs)
	}
	if len(w.NICs[0].VFs) != 2 {
		t.Error("the machine was changed that this one was made from")
	}
	if now.WithholdVFs(held) || now.WithholdVFs(nil) {
		t.Error("something is withheld twice")
	}
	if !now.WithholdVFs([]Held{{Kind: KindPair, Function: w.NICs[1].Address}}) || !slices.Equal(offeredNames(&now), before) {
		t.Errorf("offered: %q, before: %q", offeredNames(&now), before)
	}
}

// Partitions that somebody makes of a GPU that a claim has are not handed out, nor those
// that lie where a claim's partition does.
func TestWithholdInstances(t *testing.T) {
	const gpu = "GPU-0000:05:00.0"
	profile := MIGProfile{ID: 19, Name: "1g.10gb", ComputeSlices: 1, Placements: []Placement{{0, 1}, {1, 1}, {2, 1}}}
	instance := func(id, start int) GPUInstance {
		return GPUInstance{ID: id, ProfileID: 19, Placement: Placement{start, 1}, ComputeInstances: []ComputeInstance{{ComputeSlices: 1, UUID: "MIG"}}}
	}
	name := func(start int) string {
		return (&GPU{Address: at(t, "0000:05:00.0")}).partitionName("1g10gb", Placement{start, 1})
	}
	for what, test := range map[string]struct {
		held []Held
		want []int // starts that are withheld
	}{
		"nothing held":           {nil, nil},
		"another GPU":            {[]Held{{Name: "gpu", Kind: KindGPU, GPU: "other"}}, nil},
		"the GPU":                {[]Held{{Name: "gpu", Kind: KindGPU, GPU: gpu}}, []int{0, 1}},
		"a share":                {[]Held{{Name: "mps", Kind: KindMPS, GPU: gpu}}, []int{0, 1}},
		"a larger partition":     {[]Held{{Name: "mig", Kind: KindMIG, GPU: gpu, Placement: Placement{1, 2}}}, []int{1}},
		"that partition":         {[]Held{{Name: name(1), Kind: KindMIG, GPU: gpu, Placement: Placement{1, 1}}}, nil},
		"one that is not placed": {[]Held{{Name: "mig", Kind: KindMIG, GPU: gpu}}, nil},
	} {
		w := &world{TB: t}
		w.gpu("0000:05:00.0", Location{})
		w.GPUs[0].MIG = MIG{Capable: true, Enabled: true, OnDemand: true, Profiles: []MIGProfile{profile}, Instances: []GPUInstance{instance(1, 0), instance(2, 1)}}
		now := w.Machine
		some := now.WithholdInstances(test.held)
		var withheld []int
		for _, i := range now.GPUs[0].MIG.Instances {
			if i.Withheld {
				withheld = append(withheld, i.Placement.Start)
			}
		}
		if !slices.Equal(withheld, test.want) || some != (len(test.want) > 0) {
			t.Errorf("%s: withheld: %v, want %v", what, withheld, test.want)
		}
		if w.GPUs[0].MIG.Instances[0].Withheld || w.GPUs[0].MIG.Instances[1].Withheld {
			t.Errorf("%s: the machine was changed that this one was made from", what)
		}
	}
}
