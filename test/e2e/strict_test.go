package e2e

import (
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
)

// strictly asks for that enforcement, wherever the share is.
func strictly(name, body string) string { return configuredShare(name, body, "enforcement: Strict") }

// TestStrict: with a driver whose MPS has namespaces, what a claim's processes have
// together is limited.
func TestStrict(t *testing.T) {
	e := alone(t)
	e.otherMachine(node2, "mps-v3")
	_, err := e.WaitGPUs(e.ctx, node2, 2)
	e.must(err)
	e.apply(strictly("strict", selected(share("10Gi", 25), `device.attributes["dovetail.dev"].memoryEnforcement == "Strict"`)))
	e.pod("infer", fromTemplate("strict"), nonRoot, fills("6G", "5G"))
	got := e.limited("infer")[0].MPS
	if d := got.Devices[0]; got.Protocol != 3 || d.NamespaceLimit != 10<<30 || got.Percentage != 25 {
		t.Errorf("the program sees %+v", got)
	}
	if got := e.runs("infer", "--allocate", "5G"); got.Error != mps.ErrOutOfMemory {
		t.Errorf("beside 6 GiB of 10, another process that wants 5 gets %+v", got)
	}
	if got := e.runs("infer", "--allocate", "3G"); got.Error != "" {
		t.Errorf("beside 6 GiB of 10, another process that wants 3 gets %+v", got)
	}
	e.enforced("infer", machine.EnforcementStrict)
	e.apply(template("other", share("5Gi", 10)))
	e.pod("other", on(node2), fromTemplate("other"), fills("4G", "2G"))
	if other := e.limited("other")[0].MPS; other.Namespace == got.Namespace || other.Server != got.Server {
		t.Errorf("the programs of two claims see %+v and %+v", got, other)
	}
	agree(t)

	e.kill(node2, mps.ControlName+" -f")
	e.restarted("infer")
	e.restarted("other")
	agree(t)
}
