package dcb_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/dcb"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

var native = binary.NativeEndian

// attribute is one as netlink(7) lays it out.
func attribute(kind uint16, data ...byte) []byte {
	a := native.AppendUint16(nil, uint16(4+len(data)))
	a = native.AppendUint16(a, kind)
	a = append(a, data...)
	for len(a)%4 != 0 {
		a = append(a, 0)
	}
	return a
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// pfc is struct ieee_pfc: capability for eight classes, priorities that are enabled, a
// delay, and counters.
func pfc(enabled byte) []byte {
	data := make([]byte, 136)
	data[0], data[1] = 8, enabled
	native.PutUint16(data[4:], 0x1234)
	native.PutUint64(data[8:], 99)
	return data
}

// ets is struct ieee_ets.
func ets() []byte {
	data := make([]byte, 59)
	data[1] = 8
	copy(data[3:], []byte{50, 50})
	copy(data[11:], []byte{50, 50})
	copy(data[19:], []byte{2, 2})
	copy(data[27:], []byte{0, 0, 0, 1})
	return data
}

// app is struct dcb_app.
func app(selector, priority byte, protocol uint16) []byte {
	return native.AppendUint16([]byte{selector, priority}, protocol)
}

func answer(ieee ...[]byte) []byte {
	return join([]byte{0, 21, 0, 0}, attribute(1, []byte("eth1\x00")...), attribute(13, join(ieee...)...))
}

var (
	etsWant = &machine.ETS{Class: [8]uint8{3: 1}, Bandwidth: [8]uint8{50, 50}, Algorithm: [8]uint8{2, 2}}
	dscp26  = []machine.DSCPPriority{{DSCP: 26, Priority: 3}}
)

func TestParse(t *testing.T) {
	tests := []struct {
		name   string
		answer []byte
		want   machine.DCB
	}{
		{"nothing set", answer(attribute(2, pfc(0)...), attribute(1, ets()...)), machine.DCB{Trust: machine.TrustPCP, ETS: etsWant}},
		{"lossless by DSCP, as mlx5 says it", answer(attribute(1, ets()...), attribute(2, pfc(1<<3)...), attribute(3, attribute(1, app(5, 3, 26)...)...)),
			machine.DCB{PFC: [8]bool{3: true}, Trust: machine.TrustDSCP, DSCP: dscp26, ETS: etsWant}},
		{"nested flags", answer(attribute(2, pfc(1<<3)...), attribute(3|0x8000, attribute(1, app(5, 3, 26)...)...)),
			machine.DCB{PFC: [8]bool{3: true}, Trust: machine.TrustDSCP, DSCP: dscp26}},
		{"several entries, of other selectors too", answer(attribute(2, pfc(0b1010)...), attribute(3, join(
			attribute(1, app(5, 3, 48)...), attribute(1, app(1, 3, 0x8915)...), attribute(2, app(255, 1, 1)...), attribute(1, app(5, 1, 8)...))...)),
			machine.DCB{PFC: [8]bool{1: true, 3: true}, Trust: machine.TrustDSCP, DSCP: []machine.DSCPPriority{{DSCP: 8, Priority: 1}, {DSCP: 48, Priority: 3}}}},
		{"trust of its own", answer(attribute(2, pfc(1<<3)...), attribute(3, attribute(1, app(5, 3, 26)...)...), attribute(11, join(attribute(2, 255), attribute(1, 5))...)),
			machine.DCB{PFC: [8]bool{3: true}, Trust: machine.TrustPCP, DSCP: dscp26}},
		{"no IEEE", join([]byte{0, 21, 0, 0}, attribute(1, []byte("eth1\x00")...)), machine.DCB{}},
		{"another kernel's PFC, which is longer", answer(attribute(2, append(pfc(1), 1, 2, 3, 4)...)), machine.DCB{PFC: [8]bool{0: true}, Trust: machine.TrustPCP}},
		{"shorter", answer(attribute(2, 8, 8)), machine.DCB{}},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			state, err := dcb.Parse(tt.answer)
			if err != nil || !reflect.DeepEqual(state.DCB, tt.want) {
				t.Errorf("%v: got\n%+v, want\n%+v", err, state.DCB, tt.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for name, bad := range map[string][]byte{
		"empty": nil, "half a header": {0, 21}, "attribute that is too long": {0, 21, 0, 0, 99, 0, 13, 0},
		"nested likewise": answer([]byte{99, 0, 2, 0}), "in the table": answer(attribute(3, 99, 0, 1, 0)),
	} {
		if _, err := dcb.Parse(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func parse(t *testing.T, answer []byte) dcb.State {
	t.Helper()
	state, err := dcb.Parse(answer)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func TestAsk(t *testing.T) {
	want := join([]byte{0, 21, 0, 0}, attribute(1, []byte("eth1\x00")...))
	if got := dcb.Ask("eth1"); !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

func set(ieee ...[]byte) []byte {
	return join([]byte{0, 20, 0, 0}, attribute(1, []byte("eth1\x00")...), attribute(13|0x8000, join(ieee...)...))
}

func remove(entries ...[]byte) []byte {
	return join([]byte{0, 27, 0, 0}, attribute(1, []byte("eth1\x00")...), attribute(13|0x8000, attribute(3|0x8000, join(entries...)...)...))
}

// TestChange: what is set, what is then removed; nil where there is nothing to do.
func TestChange(t *testing.T) {
	plain := answer(attribute(1, ets()...), attribute(2, pfc(0)...))
	ready := answer(attribute(1, ets()...), attribute(2, pfc(1<<3)...), attribute(3, attribute(1, app(5, 3, 26)...)...))
	ordered := answer(attribute(2, pfc(0)...), attribute(11, attribute(2, 255)...))
	all := machine.DCB{PFC: [8]bool{3: true}, Trust: machine.TrustDSCP, DSCP: dscp26, ETS: etsWant}
	otherETS := &machine.ETS{Class: [8]uint8{7: 2}, Bandwidth: [8]uint8{100}, Algorithm: [8]uint8{1}}
	newETS := ets()
	copy(newETS[3:], []byte{100, 0})
	copy(newETS[11:], []byte{100, 0})
	copy(newETS[19:], []byte{1, 0})
	copy(newETS[27:], []byte{0, 0, 0, 0, 0, 0, 0, 2})
	tests := []struct {
		name          string
		has           []byte
		want          machine.DCB
		change, prune []byte
	}{
		{"nothing", plain, machine.DCB{}, nil, nil},
		{"as it is", ready, all, nil, nil},
		{"PFC keeps delay and counters", plain, machine.DCB{PFC: [8]bool{3: true}}, set(attribute(2, pfc(1<<3)...)), nil},
		{"PFC moves", ready, machine.DCB{PFC: [8]bool{4: true}}, set(attribute(2, pfc(1<<4)...)), nil},
		{"all", plain, machine.DCB{PFC: [8]bool{3: true}, DSCP: dscp26, ETS: otherETS, Trust: machine.TrustDSCP},
			set(attribute(1, newETS...), attribute(2, pfc(1<<3)...), attribute(3|0x8000, attribute(1, app(5, 3, 26)...)...)), nil},
		{"another entry", ready, machine.DCB{DSCP: []machine.DSCPPriority{{DSCP: 48, Priority: 3}}},
			set(attribute(3|0x8000, attribute(1, app(5, 3, 48)...)...)), remove(attribute(1, app(5, 3, 26)...))},
		{"trust in the tag", ready, machine.DCB{Trust: machine.TrustPCP}, nil, remove(attribute(1, app(5, 3, 26)...))},
		{"trust by order", ordered, machine.DCB{Trust: machine.TrustDSCP}, set(attribute(11|0x8000, attribute(1, 5)...)), nil},
		{"ETS of a port without", ordered, machine.DCB{ETS: otherETS}, nil, nil},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			state := parse(t, tt.has)
			if got := state.Change("eth1", tt.want); !bytes.Equal(got, tt.change) {
				t.Errorf("change\n%s, want\n%s", hex.Dump(got), hex.Dump(tt.change))
			}
			if got := state.Prune("eth1", tt.want); !bytes.Equal(got, tt.prune) {
				t.Errorf("prune\n%s, want\n%s", hex.Dump(got), hex.Dump(tt.prune))
			}
		})
	}
}

// TestResult: the kernel acknowledges the message and says in it what went wrong.
func TestResult(t *testing.T) {
	header := []byte{0, 20, 0, 0}
	if err := dcb.Result(join(header, attribute(13, 0))); err != nil {
		t.Error(err)
	}
	if err := dcb.Result(join(header, attribute(13, 256-95))); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("%v", err)
	}
	for _, bad := range [][]byte{nil, join(header, []byte{99, 0, 13, 0})} {
		if err := dcb.Result(bad); err == nil {
			t.Errorf("%x: no error", bad)
		}
	}
}

// FuzzParse: whatever comes, what was read can be asked for again and changes nothing.
func FuzzParse(f *testing.F) {
	f.Add(answer(attribute(1, ets()...), attribute(2, pfc(1<<3)...), attribute(3, attribute(1, app(5, 3, 26)...)...)))
	f.Add(answer(attribute(2, pfc(0)...), attribute(11, join(attribute(2, 255), attribute(1, 5))...)))
	f.Add([]byte{0, 21, 0, 0, 99, 0, 13, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		state, err := dcb.Parse(data)
		if err != nil {
			return
		}
		if change := state.Change("eth1", state.DCB); change != nil {
			t.Errorf("to be what it is, %x is wanted of %x", change, data)
		}
		_ = dcb.Result(data)
	})
}
