package mount

import "testing"

func TestParse(t *testing.T) {
	p, ok := parse(`36 35 98:0 /sub /with\040blank\134 rw,noatime master:1 - ext3 /dev/sda1 rw`)
	if !ok || p.ID != 36 || p.Path != `/with blank\` {
		t.Errorf("got %+v, %t", p, ok)
	}
	for _, bad := range []string{"", "x 35 98:0 / /a"} {
		if _, ok := parse(bad); ok {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestList(t *testing.T) {
	points, err := List()
	if err != nil || len(points) == 0 {
		t.Fatal(points, err)
	}
}
