package sched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// holder is a claim that is prepared.
type holder struct {
	claim *resourceapi.ResourceClaim
	plan  plan.Plan
}

// planned is what an agent decides for a claim on a machine.
func planned(m *machine.Machine, claim *resourceapi.ResourceClaim) (plan.Plan, error) {
	var a plan.Allocation
	for _, r := range claim.Status.Allocation.Devices.Results {
		result := plan.Result{Request: r.Request, Device: r.Device}
		if r.ShareID != nil {
			result.ShareID = string(*r.ShareID)
			memory, compute := r.ConsumedCapacity["memory"], r.ConsumedCapacity["compute"]
			result.Memory, result.Compute = uint64(memory.Value()), int(compute.Value())
		}
		a.Results = append(a.Results, result)
	}
	return plan.Prepare(a, m)
}

// published is the machine with what the claims hold.
func published(m machine.Machine, holders []holder) catalog.Pool {
	return catalog.Build(m, catalog.Options{Held: heldBy(holders)})
}

func heldBy(holders []holder) []machine.Held {
	var held []machine.Held
	for _, h := range holders {
		held = append(held, plan.Held(h.plan.Devices, h.plan.Holds)...)
	}
	return held
}

// change makes another machine of one, under its claims.
type change struct {
	name string
	make func(m *machine.Machine, random *rand.Rand)
}

var changes = []change{
	{"nothing", func(*machine.Machine, *rand.Rand) {}},
	{"GPUs gone", func(m *machine.Machine, random *rand.Rand) {
		m.GPUs = slices.DeleteFunc(slices.Clone(m.GPUs), func(machine.GPU) bool { return random.IntN(3) == 0 })
	}},
	{"NICs gone", func(m *machine.Machine, random *rand.Rand) {
		m.NICs = slices.DeleteFunc(slices.Clone(m.NICs), func(machine.NIC) bool { return random.IntN(3) == 0 })
	}},
	{"uplinks", func(m *machine.Machine, random *rand.Rand) {
		m.NICs = slices.Clone(m.NICs)
		for i := range m.NICs {
			if random.IntN(3) == 0 {
				m.NICs[i].Withheld = "it has the default route"
			}
		}
	}},
	{"MIG mode by hand", func(m *machine.Machine, random *rand.Rand) {
		m.GPUs = slices.Clone(m.GPUs)
		for i := range m.GPUs {
			m.GPUs[i].MIG.Enabled = m.GPUs[i].MIG.Enabled || random.IntN(3) == 0
		}
	}},
	{"pairs declared", func(m *machine.Machine, random *rand.Rand) {
		for _, gpu := range m.GPUs {
			if random.IntN(2) == 0 {
				m.Network.Pairs = append(m.Network.Pairs, machine.DeclaredPair{GPU: gpu.Address, NIC: m.NICs[random.IntN(len(m.NICs))].Address})
			}
		}
	}},
	{"VFs gone", func(m *machine.Machine, random *rand.Rand) {
		m.NICs = slices.Clone(m.NICs)
		for i := range m.NICs {
			m.NICs[i].VFs = slices.DeleteFunc(slices.Clone(m.NICs[i].VFs), func(machine.VF) bool { return random.IntN(3) == 0 })
		}
	}},
	{"VFs removed", func(m *machine.Machine, random *rand.Rand) {
		m.NICs = slices.Clone(m.NICs)
		for i := range m.NICs {
			if random.IntN(3) > 0 {
				m.NICs[i].VFs = nil
			}
		}
	}},
	{"VFs made", func(m *machine.Machine, random *rand.Rand) {
		m.NICs = slices.Clone(m.NICs)
		for i := range m.NICs {
			if m.NICs[i].Offered() && len(m.NICs[i].VFs) == 0 && random.IntN(3) > 0 {
				makeVFs(&m.NICs[i], 40)
			}
		}
	}},
	{"partitions by hand", func(m *machine.Machine, _ *rand.Rand) {
		m.GPUs = slices.Clone(m.GPUs)
		for i := range m.GPUs {
			mig := &m.GPUs[i].MIG
			p := &mig.Profiles[0]
			mig.Enabled = true
			mig.Instances = []machine.GPUInstance{{ID: 1, ProfileID: p.ID, Placement: p.Placements[0], ComputeInstances: []machine.ComputeInstance{{ComputeSlices: p.ComputeSlices, UUID: "MIG-by-hand"}}}}
		}
	}},
	{"MIG mode off by hand", func(m *machine.Machine, _ *rand.Rand) {
		m.GPUs = slices.Clone(m.GPUs)
		for i := range m.GPUs {
			m.GPUs[i].MIG.Enabled, m.GPUs[i].MIG.OnDemand = false, false
		}
	}},
}

// makeVFs gives a NIC so many.
func makeVFs(nic *machine.NIC, n int) {
	nic.VFs = nil
	for i := range n {
		a := nic.Address
		a.Device, a.Function = uint8(1+(i+1)/8), uint8((i+1)%8)
		nic.VFs = append(nic.VFs, machine.VF{Index: i, Address: a, RDMA: &machine.RDMADevice{Name: fmt.Sprintf("%s_v%d", nic.RDMA.Name, i)}})
	}
}

// sharedVFs is a machine whose NICs have virtual functions, and two lanes each.
const sharedVFs = "hgx-4nic with VFs"

func described(t *testing.T, name string) machine.Machine {
	if name != sharedVFs {
		return simulatortest.Describe(t, name)
	}
	m := simulatortest.Describe(t, "hgx-4nic")
	for i := range m.NICs {
		if m.NICs[i].Offered() {
			makeVFs(&m.NICs[i], 4)
		}
	}
	return m
}

// TestHeldStaysHeld: whatever becomes of a machine under its claims, as from one agent's
// life to the next, nobody is given what they have; and all of it is there again once they
// are gone.
func TestHeldStaysHeld(t *testing.T) {
	kinds := []machine.Kind{
		machine.KindPair, machine.KindPair, machine.KindPair, machine.KindGPU, machine.KindMIG, machine.KindMPS, machine.KindTimeSlice,
		machine.KindNIC, machine.KindRDMA, machine.KindVF,
	}
	remnants := 0
	for _, name := range []string{"hgx-4nic", "dual-rail", "sriov", "xe8640", sharedVFs} {
		before := described(t, name)
		for _, c := range changes {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				for seed := range uint64(3) {
					random := rand.New(rand.NewPCG(seed, 11))
					s := New()
					s.Publish(node, catalog.Build(before, catalog.Options{}))
					holders := arrivals(t, s, &before, "before", kinds, random, nil)
					now := before
					c.make(&now, random)
					now.WithholdVFs(heldBy(holders))
					pool := published(now, holders)
					if pool.ForClaims {
						remnants++
					}
					if pool.ForClaims && c.name == "nothing" {
						t.Error("claims change what is published")
					}
					s.Publish(node, pool)
					holders = arrivals(t, s, &now, "after", kinds, random, holders)
					for _, h := range holders {
						s.Release(h.claim)
					}
					if got, want := published(now, nil), catalog.Build(now, catalog.Options{}); got.ForClaims || len(got.Devices) != len(want.Devices) {
						t.Error("without claims, something is published for claims")
					}
				}
			})
		}
	}
	if remnants < 20 {
		t.Errorf("only %d machines had something for claims alone", remnants)
	}
}

// arrivals are claims that come until there is little room left. None may clash with
// those that are there.
func arrivals(t *testing.T, s *Scheduler, m *machine.Machine, name string, kinds []machine.Kind, random *rand.Rand, holders []holder) []holder {
	t.Helper()
	for i := range 20 {
		claim := Claim(fmt.Sprint(name, i), Several(1, Request("r", kinds[random.IntN(len(kinds))])))
		where, err := s.Allocate(t.Context(), claim)
		if err != nil {
			t.Fatal(err)
		}
		if where == "" || random.IntN(2) == 0 {
			s.Release(claim)
			continue
		}
		p, err := planned(m, claim)
		if err != nil {
			t.Fatalf("%s has %q: %v", claim.Name, Devices(claim), err)
		}
		for _, h := range holders {
			if clash := p.Clash(h.plan.Holds, h.plan.Joins); clash != "" {
				t.Fatalf("%s is given %q, but %s is of %s, which has %q", claim.Name, Devices(claim), clash, h.claim.Name, Devices(h.claim))
			}
		}
		holders = append(holders, holder{claim, p})
	}
	return holders
}
