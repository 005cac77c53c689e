package model

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	for _, name := range Names() {
		m, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if m.PCIDevice&0xffff != 0x10de || m.PCISubsystem&0xffff != 0x10de {
			t.Errorf("%s is not of vendor 10de", name)
		}
		if m.Memory.Reserved == 0 || m.Memory.Usable() == 0 || m.Cores%m.Multiprocessors != 0 {
			t.Errorf("%s has odd figures: %+v", name, m)
		}
		if m.MIG != nil {
			checkMIG(t, m)
		}
	}
	if _, err := Lookup("voodoo"); err == nil || !strings.Contains(err.Error(), "h100-sxm5-80gb") {
		t.Errorf("an unknown model: %v", err)
	}
}

func checkMIG(t *testing.T, m *Model) {
	t.Helper()
	ids := map[int]bool{}
	last := -1
	for _, p := range m.MIG.Profiles {
		if p.Number <= last || ids[p.ID] {
			t.Errorf("%s: profile %s has a number out of order or an ID twice", m.Name, p.Name)
		}
		last, ids[p.ID] = p.Number, true
		if p.Memory > m.Memory.Total || p.Multiprocessors > m.Multiprocessors || p.ComputeSlices > m.MIG.Slices {
			t.Errorf("%s: profile %s is larger than the GPU", m.Name, p.Name)
		}
		if p.Media && p.MaxInstances != 1 {
			t.Errorf("%s: media profile %s is there %d times", m.Name, p.Name, p.MaxInstances)
		}
		if p.MaxInstances > len(p.Placements) {
			t.Errorf("%s: profile %s has room for %d of %d", m.Name, p.Name, len(p.Placements), p.MaxInstances)
		}
		if all := p.Engines.Times(p.MaxInstances); !all.Within(m.MIG.Engines) {
			t.Errorf("%s: %d of profile %s have more engines than the GPU: %+v", m.Name, p.MaxInstances, p.Name, all)
		}
		for _, place := range p.Placements {
			if place.Start < 0 || place.Start+place.Size > m.MIG.MemoryUnits {
				t.Errorf("%s: profile %s does not fit at %+v", m.Name, p.Name, place)
			}
		}
		if found, ok := m.MIG.Profile(p.ID); !ok || found.Name != p.Name {
			t.Errorf("%s: ID %d finds %v", m.Name, p.ID, found)
		}
	}
}

func TestEngines(t *testing.T) {
	m, err := Lookup("h100-sxm5-80gb")
	if err != nil {
		t.Fatal(err)
	}
	if e := m.Engines(); e.Copy != 8 || e.Decoders != 7 || e.OFA != 1 {
		t.Errorf("an H100 has %+v", e)
	}
}
