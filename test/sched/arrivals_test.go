package sched

import (
	"fmt"
	"math/rand/v2"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// TestArrivals lets claims of every kind come and go. What is out must fit the hardware,
// by a reckoning that knows nothing of counters; and a claim for one device must not wait
// while there is one that would fit.
func TestArrivals(t *testing.T) {
	for _, name := range []string{"dgx-h100", "hgx-4nic", "dual-rail", "sriov", "xe8640"} {
		t.Run(name, func(t *testing.T) {
			m := simulatortest.Describe(t, name)
			s := New()
			s.Publish(node, catalog.Build(m, catalog.Options{}))
			random := rand.New(rand.NewPCG(7, 7))
			var running []*resourceapi.ResourceClaim
			offered := map[string]*machine.Device{}
			for _, d := range m.Devices() {
				offered[d.Name] = &d
			}
			kinds := []machine.Kind{
				machine.KindPair, machine.KindPair, machine.KindPair, machine.KindGPU, machine.KindMIG, machine.KindMIG, machine.KindMPS,
				machine.KindTimeSlice, machine.KindNIC, machine.KindRDMA, machine.KindVF,
			}
			waited, got := map[machine.Kind]int{}, map[machine.Kind]int{}
			for i := range 400 {
				if len(running) > 0 && random.IntN(5) < 2 {
					last := random.IntN(len(running))
					s.Release(running[last])
					running[last] = running[len(running)-1]
					running = running[:len(running)-1]
					continue
				}
				kind := kinds[random.IntN(len(kinds))]
				var selectors []string
				if kind == machine.KindMIG {
					profiles := m.GPUs[0].MIG.Profiles
					selectors = append(selectors, Profile(profiles[random.IntN(len(profiles))].Name))
				}
				count := int64(1 + random.IntN(2)*random.IntN(3))
				claim := Claim(fmt.Sprint("c", i), Several(count, Request("r", kind, selectors...)))
				before := out(offered, running)
				where, err := s.Allocate(t.Context(), claim)
				switch {
				case err != nil:
					t.Fatal(err)
				case where == "" && count == 1 && len(selectors) == 0:
					waited[kind]++
					for _, d := range offered {
						if d.Kind == kind && before.with(d) == nil {
							t.Fatalf("step %d: a claim for a %s waits, but %s is free", i, kind, d.Name)
						}
					}
				case where != "":
					got[kind]++
					running = append(running, claim)
				}
				if err := out(offered, running).conflict; err != nil {
					t.Fatalf("step %d, %s: %v", i, claim.Name, err)
				}
			}
			if waited[machine.KindPair] == 0 || got[machine.KindPair] < 5 || got[machine.KindMIG] < 5 || got[machine.KindMPS] < 2 {
				t.Errorf("the arrivals try too little: got %v, waited %v", got, waited)
			}
		})
	}
}

// hardware is what is out of a machine, by its parts.
type hardware struct {
	gpus     map[*machine.GPU][]*machine.Device
	nics     map[*machine.NIC][]*machine.Device
	conflict error
}

func out(offered map[string]*machine.Device, claims []*resourceapi.ResourceClaim) *hardware {
	h := &hardware{gpus: map[*machine.GPU][]*machine.Device{}, nics: map[*machine.NIC][]*machine.Device{}}
	for _, claim := range claims {
		for _, name := range Devices(claim) {
			d := offered[name]
			if err := h.with(d); err != nil {
				h.conflict = err
			}
			h.gpus[d.GPU] = append(h.gpus[d.GPU], d)
			h.nics[d.NIC] = append(h.nics[d.NIC], d)
		}
	}
	return h
}

// with says why the device cannot be out beside the others; nil where it can.
func (h *hardware) with(d *machine.Device) error {
	if d.GPU != nil {
		for _, other := range h.gpus[d.GPU] {
			shares := d.Kind.SharesGPU() && d.Name == other.Name
			partitions := d.Kind == machine.KindMIG && other.Kind == machine.KindMIG && !d.Partition.Placement.Overlaps(other.Partition.Placement)
			if !shares && !partitions {
				return fmt.Errorf("%s and %s have one GPU", d.Name, other.Name)
			}
		}
	}
	if d.NIC == nil {
		return nil
	}
	lanes := 1
	for _, other := range h.nics[d.NIC] {
		switch {
		case d.VF != nil && other.VF != nil && d.VF != other.VF: // each its own
		case d.VF == nil && d.Kind == machine.KindPair && other.Kind == machine.KindPair:
			lanes++
		case d.Kind == machine.KindRDMA && other.Kind == machine.KindRDMA:
		default:
			return fmt.Errorf("%s and %s have one NIC", d.Name, other.Name)
		}
	}
	if lanes > d.Lanes {
		return fmt.Errorf("%s is lane %d of a NIC with %d", d.Name, lanes, d.Lanes)
	}
	return nil
}
