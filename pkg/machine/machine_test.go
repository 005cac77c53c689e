package machine

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

func TestAddress(t *testing.T) {
	for _, test := range []struct{ in, text, label string }{
		{"0000:1b:00.0", "0000:1b:00.0", "1b-00"},
		{"00000000:1B:00.0", "0000:1b:00.0", "1b-00"}, // NVML's
		{"0008:01:00.0", "0008:01:00.0", "0008-01-00"},
		{"0008:01:00.1", "0008:01:00.1", "0008-01-00-1"},
		{"0000:af:1f.7", "0000:af:1f.7", "af-1f-7"},
		{"10000:01:00.0", "10000:01:00.0", "10000-01-00"}, // VMD
	} {
		a, err := ParseAddress(test.in)
		if err != nil || a.String() != test.text || a.Label() != test.label {
			t.Errorf("%s: %s, %s, %v", test.in, a, a.Label(), err)
		}
	}
	for _, in := range []string{"", "1b:00.0", "0000:1b:20.0", "0000:1b:00.8", "0000:1b:00.0 ", "0000:1b:00.0x", "zzzz:1b:00.0", "0000:1bb:00.0"} {
		if a, err := ParseAddress(in); err == nil {
			t.Errorf("%q parsed as %s", in, a)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("0000:1b:00.0")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddress(s)
		if err != nil {
			return
		}
		if again, err := ParseAddress(a.String()); err != nil || again != a {
			t.Errorf("%q: %v, then %v, %v", s, a, again, err)
		}
	})
}

func TestAddressesAreOrderedAsNumbers(t *testing.T) {
	low, high := Address{Domain: 0xffff}, Address{Domain: 0x10000}
	if low.Compare(high) >= 0 || high.Compare(low) <= 0 || low.Compare(low) != 0 {
		t.Error("domain ffff must come before 10000")
	}
}

func TestMachineSurvivesJSON(t *testing.T) {
	before := Machine{BootID: "b", Driver: Driver{Version: "550.163.01", CUDA: Version{13, 4}}, GPUs: []GPU{{
		UUID: "GPU-1", Address: Address{Domain: 8, Bus: 1}, ComputeCapability: Version{9, 0}, Location: Location{NUMANode: -1},
	}}}
	content, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	var after Machine
	if err := json.Unmarshal(content, &after); err != nil || !after.Equal(&before) {
		t.Errorf("got %+v, %v", after, err)
	}
}

func TestGPUInMIGModeIsNotOfferedWhole(t *testing.T) {
	m := Machine{GPUs: []GPU{{UUID: "a", Address: Address{Bus: 1}, MIG: MIG{Capable: true, Enabled: true}}, {UUID: "b", Address: Address{Bus: 2}}}}
	var names []string
	for _, d := range m.Devices() {
		names = append(names, d.Name)
	}
	if !slices.Equal(names, []string{"gpu-02-00", "timeslice-02-00", "monitor-01-00", "monitor-02-00"}) {
		t.Errorf("offered: %q", names)
	}
	if _, ok := m.Device("gpu-01-00"); ok {
		t.Error("the GPU in MIG mode is offered")
	}
}

func TestUsableMemoryIsNeverNegative(t *testing.T) {
	if got := (Memory{Total: 80, Reserved: 3}).Usable(); got != 77 {
		t.Errorf("got %d", got)
	}
	if got := (Memory{Total: 3, Reserved: 80}).Usable(); got != 0 {
		t.Errorf("got %d", got)
	}
}

func TestMerge(t *testing.T) {
	a := GPU{UUID: "a", Address: Address{Bus: 1}}
	b := GPU{UUID: "b", Address: Address{Bus: 2}}
	before := Machine{BootID: "1", GPUs: []GPU{a, b}}
	lostA := Fault{Device: "0000:01:00.0", Kind: FaultResetRequired, Message: "reset it"}

	for name, test := range map[string]struct {
		now  Machine
		want []Health // of a, b
	}{
		"as before":       {before, []Health{{}, {}}},
		"one is a fault":  {Machine{BootID: "1", GPUs: []GPU{b}, Faults: []Fault{lostA}}, []Health{{Reason: FaultResetRequired, Message: "reset it"}, {}}},
		"another boot":    {Machine{BootID: "2", GPUs: []GPU{b}}, []Health{{}}},
		"a GPU came back": {Machine{BootID: "1", GPUs: []GPU{a, b}}, []Health{{}, {}}},
	} {
		t.Run(name, func(t *testing.T) {
			merged := Merge(before, test.now)
			if len(merged.GPUs) != len(test.want) {
				t.Fatalf("GPUs: %+v", merged.GPUs)
			}
			for i, want := range test.want {
				if got := merged.GPUs[i].Health; got != want {
					t.Errorf("GPU %s: %+v", merged.GPUs[i].UUID, got)
				}
			}
		})
	}

	vanished := Merge(before, Machine{BootID: "1", GPUs: []GPU{b}})
	if h := vanished.GPUs[0].Health; h.Reason != FaultLost || h.Message == "" {
		t.Errorf("a GPU that vanished without a word: %+v", h)
	}
	exchanged := Merge(before, Machine{BootID: "1", GPUs: []GPU{{UUID: "c", Address: a.Address}, b}})
	if len(exchanged.GPUs) != 2 || exchanged.GPUs[0].UUID != "c" {
		t.Errorf("another GPU in the slot: %+v", exchanged.GPUs)
	}
	ended := Merge(before, Machine{BootID: "1", GPUs: []GPU{b}, Faults: []Fault{
		{Device: "0000:01:00.0", Kind: FaultUnreadable}, {Device: "0000:01:00.0", Kind: FaultLost},
	}})
	if h := ended.GPUs[0].Health; h.Reason != FaultLost {
		t.Errorf("of two faults: %+v", h)
	}
	if back := Merge(vanished, before); !back.GPUs[0].Health.OK() {
		t.Error("the GPU came back and is still unhealthy")
	}
}

func TestEveryDeviceIsFoundByItsName(t *testing.T) {
	profile := MIGProfile{ID: 19, Name: "1g.10gb", ComputeSlices: 1, Placements: []Placement{{0, 1}, {1, 1}}}
	m := Machine{GPUs: []GPU{
		{UUID: "a", Address: Address{Bus: 1}, MIG: MIG{Capable: true, OnDemand: true, Profiles: []MIGProfile{profile}}},
		{UUID: "b", Address: Address{Domain: 1, Bus: 1}, MIG: MIG{Capable: true, Enabled: true, Profiles: []MIGProfile{profile}}},
	}}
	for _, want := range m.Devices() {
		if got, ok := m.Device(want.Name); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is found as %+v, %t", want.Name, got, ok)
		}
	}
	if d, ok := m.Device("mig-01-00-1g10gb-2"); ok {
		t.Errorf("found %+v", d)
	}
}
