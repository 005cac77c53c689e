package simulator_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func TestPullsAndPlugs(t *testing.T) {
	m := simulatortest.New(t, "nic-only")
	before := nics(t, m)
	must(t, m.SetLink("mlx5_0", false))
	n := nics(t, m)[0]
	if n.Health.Reason != machine.FaultLinkDown || n.Netdevs[0].Carrier || !n.Netdevs[0].Up || n.RDMA.Ports[0].State != "DOWN" || n.Netdevs[0].Speed != 0 {
		t.Errorf("without a link it is %+v", n)
	}
	must(t, m.SetLink("enp49s0np0", true))
	h := home(t, m, n.Address)
	must(t, m.MoveNIC(hardware.NICMove{Home: h}, "pod"))
	must(t, m.Unplug(n.Address.String()))
	if after := nics(t, m); len(after) != 1 || after[0].Address != before[1].Address {
		t.Errorf("unplugged: %+v", after)
	}
	wantClass(t, failure.Absent, "brought home", m.NICs().BringHome(t.Context(), h))
	wantClass(t, failure.Absent, "moved", m.MoveNIC(hardware.NICMove{Home: h}, "pod"))
	must(t, m.TakeName("enp49s0np0"))
	must(t, m.Plug("mlx5_0"))
	if after := nics(t, m)[0]; after.Netdevs[0].Name != "eth0" || after.Away {
		t.Errorf("plugged in again: %+v", after)
	}
	wantClass(t, failure.Absent, "no such NIC", m.Unplug("eth0"))
}

func TestNICFailures(t *testing.T) {
	function := machine.Address{Bus: 0x31}
	for kind, class := range map[simulator.FailureKind]error{
		simulator.FailureUnknown: nil, simulator.FailureInUse: failure.Busy,
		simulator.FailureInsufficientResources: failure.Conflict, simulator.FailureLost: failure.Absent,
	} {
		m := simulatortest.New(t, "nic-only")
		h := home(t, m, function)
		for call, do := range map[string]func() error{
			simulator.CallNICHome:   func() error { return second(m.NICs().NICHome(t.Context(), function)) },
			simulator.CallMoveNIC:   func() error { return m.MoveNIC(hardware.NICMove{Home: h}, "pod") },
			simulator.CallBringHome: func() error { return m.NICs().BringHome(t.Context(), h) },
			simulator.CallSetDCB:    func() error { return second(m.NICs().SetDCB(t.Context(), function, h.DCB)) },
			simulator.CallSetVFs:    func() error { return m.NICs().SetVFs(t.Context(), function, 0) },
		} {
			must(t, m.Reboot())
			must(t, m.Fail(function.String(), call, simulator.Failure{Times: 1, Error: kind}))
			before, err := m.State()
			must(t, err)
			if err := do(); err == nil || failure.ClassOf(err) != class {
				t.Errorf("%s %s: %v, want class %v", call, kind, err, class)
			}
			after, err := m.State()
			must(t, err)
			if after.NICs[0].Unplugged != (kind == simulator.FailureLost) || !reflect.DeepEqual(after.NICs[0].FunctionState, before.NICs[0].FunctionState) {
				t.Errorf("%s %s: it became %+v", call, kind, after.NICs[0])
			}
		}
	}
	m := simulatortest.New(t, "nic-only")
	must(t, m.Fail("mlx5_0", simulator.CallDescribeNIC, simulator.Failure{Times: 1, Error: simulator.FailureUnknown}))
	d, err := m.NICs().DescribeNICs(t.Context())
	must(t, err)
	if len(d.NICs) != 1 || len(d.Faults) != 1 || d.Faults[0].Device != function.String() || d.Faults[0].Kind != machine.FaultUnreadable {
		t.Errorf("one that cannot be read: %+v", d)
	}
	if len(nics(t, m)) != 2 {
		t.Error("it fails twice")
	}
}

func TestWatchNICs(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	ctx, stop := context.WithCancel(t.Context())
	seen, ended := make(chan bool, 100), make(chan error, 1)
	go func() { ended <- m.NICs().WatchNICs(ctx, func() { seen <- true }) }()
	link := false
	for done := false; !done; link = !link { // nothing says that it has begun
		must(t, m.SetLink("mlx5_3", link))
		select {
		case <-seen:
			done = true
		default:
		}
	}
	stop()
	must(t, <-ended)
}
