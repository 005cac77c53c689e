package simulator_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// TestMoveAndReturn: a NIC goes into a Pod and comes back as it was.
func TestMoveAndReturn(t *testing.T) {
	for _, exclusive := range []bool{false, true} {
		t.Run(fmt.Sprintf("exclusive=%t", exclusive), func(t *testing.T) {
			m := simulatortest.New(t, "nic-only")
			must(t, m.SetRDMAExclusive(exclusive))
			function := address(t, "0000:31:00.0")
			before := nics(t, m)
			h := home(t, m, function)
			if h.RDMAMoves != exclusive || h.RDMA != "mlx5_0" || len(h.Netdevs) != 1 || len(h.Netdevs[0].Routes) != 1 || len(h.DCB.DSCP) != 1 {
				t.Errorf("its home is %+v", h)
			}
			move := hardware.NICMove{Home: h, Name: "net1", MTU: 4200, Addresses: []string{"192.0.2.7/24"}}
			must(t, m.MoveNIC(move, "pod"))
			must(t, m.MoveNIC(move, "pod")) // of a container that was restarted
			away := nics(t, m)[0]
			if !away.Away || len(away.Netdevs) != 0 || (len(away.RDMA.Ports) == 0) != exclusive {
				t.Errorf("while it is away it is described as %+v", away)
			}
			wantClass(t, failure.Conflict, "its home, read while it is away", second(m.NICs().NICHome(t.Context(), function)))
			wantClass(t, failure.Conflict, "moved into another namespace", m.MoveNIC(move, "other"))
			wantClass(t, failure.Conflict, "DCB set while it is away", second(m.NICs().SetDCB(t.Context(), function, h.DCB)))
			state, err := m.State()
			must(t, err)
			want := simulator.NetdevState{Name: "net1", MAC: h.Netdevs[0].MAC, MTU: 4200, Up: true, Addresses: move.Addresses, Namespace: "pod"}
			if got := state.NICs[0].Netdevs[0]; !reflect.DeepEqual(got, want) || (state.NICs[0].RDMANamespace == "pod") != exclusive {
				t.Errorf("in the Pod it is %+v, RDMA in %q", got, state.NICs[0].RDMANamespace)
			}
			for range 2 {
				must(t, m.NICs().BringHome(t.Context(), h))
				if after := nics(t, m); !reflect.DeepEqual(after, before) {
					t.Errorf("it came back as\n%+v, was\n%+v", after[0], before[0])
				}
			}
		})
	}
}

// TestNamespaceEnds: the kernel takes a NIC back, but not as it was.
func TestNamespaceEnds(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	must(t, m.SetRDMAExclusive(true))
	before := nics(t, m)
	first, other := before[1].Address, before[2].Address
	h, otherHome := home(t, m, first), home(t, m, other)
	must(t, m.MoveNIC(hardware.NICMove{Home: h, Name: "eth7", MTU: 1400}, "pod"))
	must(t, m.MoveNIC(hardware.NICMove{Home: otherHome, Name: "eth8"}, "pod"))
	wantClass(t, failure.Conflict, "two of one name in a namespace", m.MoveNIC(hardware.NICMove{Home: home(t, m, before[3].Address), Name: "eth7"}, "pod"))
	must(t, m.TakeName("eth8"))
	must(t, m.SealNamespace("pod"))
	wantClass(t, failure.Busy, "brought home from a namespace that is ending", m.NICs().BringHome(t.Context(), h))
	must(t, m.EndNamespace("pod"))

	state, err := m.State()
	must(t, err)
	want := simulator.NetdevState{Name: "eth7", MAC: h.Netdevs[0].MAC, MTU: 1400}
	if got := state.NICs[1].Netdevs[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("the kernel took it back as %+v, want %+v", got, want)
	}
	if got := state.NICs[2].Netdevs[0].Name; got != "dev0" {
		t.Errorf("where its name is taken it is called %s", got)
	}
	if dcb := state.NICs[1].DCB; dcb.Trust != machine.TrustPCP || dcb.DSCP != nil || !dcb.PFC[3] {
		t.Errorf("its DCB is %+v", dcb)
	}
	must(t, m.TakeName(h.Netdevs[0].Name))
	wantClass(t, failure.Conflict, "brought home where another has its name", m.NICs().BringHome(t.Context(), h))
	must(t, m.GiveName(h.Netdevs[0].Name))
	must(t, m.NICs().BringHome(t.Context(), h))
	must(t, m.NICs().BringHome(t.Context(), otherHome))
	if after := nics(t, m); !reflect.DeepEqual(after, before) {
		t.Errorf("it came back as\n%+v, was\n%+v", after, before)
	}
}
