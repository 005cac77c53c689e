package machine

import (
	"testing"
)

func TestCloseness(t *testing.T) {
	behind := func(numa int, bridges ...string) Location { return place(t, "pci0000:17", numa, bridges...) }
	const rootPort, up, down, otherDown, up2, down2 = "0000:17:01.0", "0000:18:00.0", "0000:19:00.0", "0000:19:01.0", "0000:1a:00.0", "0000:1b:00.0"
	for name, test := range map[string]struct {
		a, b Location
		want Closeness
	}{
		"one switch":              {behind(0, rootPort, up, down), behind(0, rootPort, up, otherDown), ClosenessPIX},
		"one bridge":              {behind(0, rootPort), behind(0, rootPort), ClosenessPIX},
		"functions of one card":   {behind(0, rootPort, up, down), behind(0, rootPort, up, down), ClosenessPIX},
		"a switch below a switch": {behind(0, rootPort, up, down, up2, down2), behind(0, rootPort, up, otherDown), ClosenessPXB},
		"two switches":            {behind(0, rootPort, up, down, up2, down2), behind(0, rootPort, up, otherDown, "0000:20:00.0", "0000:21:00.0"), ClosenessPXB},
		"root ports":              {behind(0, rootPort), behind(0, "0000:17:02.0"), ClosenessPHB},
		"two switches, two ports": {behind(0, rootPort, up, down), behind(0, "0000:17:02.0", up2, down2), ClosenessPHB},
		"flat":                    {behind(-1), behind(-1), ClosenessPHB},
		"flat, one NUMA unknown":  {behind(0), behind(-1), ClosenessPHB},
		"one root, NUMA nodes":    {behind(0, rootPort), behind(1, rootPort), ClosenessSYS},
		"one NUMA node":           {behind(1, rootPort), place(t, "pci0000:5d", 1, "0000:5d:01.0"), ClosenessNODE},
		"two NUMA nodes":          {behind(0, rootPort), place(t, "pci0000:5d", 1, "0000:5d:01.0"), ClosenessSYS},
		"nothing known":           {Location{NUMANode: -1}, Location{NUMANode: -1}, ClosenessSYS},
		"one NUMA node unknown":   {behind(0, rootPort), place(t, "pci0000:5d", -1), ClosenessSYS},
		"no roots, one NUMA node": {Location{NUMANode: 1}, Location{NUMANode: 1}, ClosenessNODE},
	} {
		if one, other := test.a.Closeness(&test.b), test.b.Closeness(&test.a); one != test.want || other != test.want {
			t.Errorf("%s: %s and %s, want %s", name, one, other, test.want)
		}
	}
}
