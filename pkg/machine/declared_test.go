package machine

import (
	"slices"
	"strings"
	"testing"
)

func TestDeclarationsThatNameWhatIsNotThere(t *testing.T) {
	w := &world{TB: t}
	flat(w)
	w.NICs[1].Withheld = "it has the default route: give the host another uplink"
	w.NICs[0].MaxVFs = 4
	w.Network = Network{
		Pairs: []DeclaredPair{{at(t, "0000:05:00.0"), at(t, "0000:01:00.0")}, {at(t, "0000:09:00.0"), at(t, "0000:02:00.0")}, {at(t, "0000:06:00.0"), at(t, "0000:03:00.0")}},
		Rails: map[Address]int{at(t, "0000:01:00.0"): 0, at(t, "0000:04:00.0"): 1},
		VFs: []VFCount{
			{at(t, "0000:01:00.0"), 4}, {at(t, "0000:07:00.0"), 4}, {at(t, "0000:01:00.0"), 5}, {at(t, "0000:02:00.0"), 1},
		},
	}
	want := []struct {
		device string
		parts  []string
	}{
		{"0000:09:00.0", []string{"pairs[1].gpu", "no GPU at 0000:09:00.0", "dovetail-node topology"}},
		{"0000:02:00.0", []string{"pairs[1].nic", "0000:02:00.0 is not offered: it has the default route"}},
		{"0000:03:00.0", []string{"pairs[2].nic", "no NIC at 0000:03:00.0"}},
		{"0000:04:00.0", []string{"rails[1]", "no NIC at 0000:04:00.0"}},
		{"0000:07:00.0", []string{"virtualFunctions[1].nic", "no NIC at 0000:07:00.0"}},
		{"0000:01:00.0", []string{"virtualFunctions[2].count: 5", "NIC 0000:01:00.0 can have 4 virtual functions at most: correct it"}},
		{"0000:02:00.0", []string{"virtualFunctions[3].count: 1", "no virtual functions before SR-IOV is enabled in the card's firmware"}},
	}
	faults := w.AllFaults()
	if len(faults) != len(want) {
		t.Fatalf("faults: %+v", faults)
	}
	for i, f := range faults {
		if f.Kind != FaultUndeclared || f.Device != want[i].device {
			t.Errorf("fault %+v, want one of %s", f, want[i].device)
		}
		for _, part := range want[i].parts {
			if !strings.Contains(f.Message, part) {
				t.Errorf("%q is not in %q", part, f.Message)
			}
		}
	}
	if got := paired(&w.Machine); !slices.Equal(got, []string{"05-00+01-00 declared lanes 1 rail 0"}) {
		t.Errorf("pairs: %q", got)
	}
}
