package e2e

import (
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// strictly asks for that enforcement, wherever the share is.
func strictly(name, body string) string { return configuredShare(name, body, "enforcement: Strict") }

// lacksLimits: a share of a GPU of which the driver limits nothing starts, with MPS's limit,
// and none that is to be Strict is given out.
func (e *env) lacksLimits(gpu int) {
	e.Helper()
	_, err := e.Sim(e.ctx, node2, "no-memory-limits", strconv.Itoa(gpu))
	e.must(err)
	of := e.gpu(node2, gpu)
	name := string(machine.KindMPS) + "-" + of.Spec.Address.Label()
	_, err = e.WaitSlices(e.ctx, node2, name+" as not limited by the driver", func(s []*resourceapi.ResourceSlice) bool {
		level := harness.Devices(s)[name].Attributes["memoryEnforcement"].StringValue
		return level != nil && *level == string(machine.EnforcementBestEffort)
	})
	e.must(err)
	e.apply(template("lacking", shareOf(of.Spec.UUID, "5Gi", 10)))
	e.apply(strictly("refused", shareOf(of.Spec.UUID, "5Gi", 10)))
	e.pod("lacking", on(node2), fromTemplate("lacking"), fills("4G", "2G"))
	e.enforced("lacking", machine.EnforcementBestEffort)
	e.pod("refused", on(node2), fromTemplate("refused"))
	e.prepareFailed("refused", "enforcement: Strict, but GPU "+of.Spec.UUID+" gives BestEffort", "the nearest that works is BestEffort")
	for _, pod := range []string{"lacking", "refused"} {
		e.gone(pod)
	}
}

// TestStrict: with a driver whose MPS has namespaces, what a claim's processes have
// together is limited. That is strict where the driver limits containers, too, which it
// does by their cgroups of version 2; elsewhere, and on a GPU of which the driver limits nothing, a claim that
// wants no less is refused.
func TestStrict(t *testing.T) {
	e := alone(t)
	e.otherMachine(node2, "mps-v3")
	_, err := e.WaitGPUs(e.ctx, node2, 2)
	e.must(err)
	e.lacksLimits(1)
	given := machine.EnforcementBestEffort
	var fs unix.Statfs_t
	if e.must(unix.Statfs("/sys/fs/cgroup", &fs)); fs.Type == unix.CGROUP2_SUPER_MAGIC {
		given = machine.EnforcementStrict
	}
	e.apply(template("share", selected(share("10Gi", 25), `device.attributes["dovetail.dev"].memoryEnforcement == "`+string(given)+`"`)))
	e.pod("infer", on(node2), fromTemplate("share"), nonRoot, fills("6G", "5G"))
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
	e.enforced("infer", given)
	e.apply(strictly("other", share("5Gi", 10)))
	e.pod("other", on(node2), fromTemplate("other"), fills("4G", "2G"))
	if given != machine.EnforcementStrict {
		e.prepareFailed("other", "enforcement: Strict", "615.", "cgroup version 1", "the nearest that works is BestEffort")
		e.gone("other")
		e.apply(template("besteffort", share("5Gi", 10)))
		e.pod("other", on(node2), fromTemplate("besteffort"), fills("4G", "2G"))
	}
	if other := e.limited("other")[0].MPS; other.Namespace == got.Namespace || other.Server != got.Server {
		t.Errorf("the programs of two claims see %+v and %+v", got, other)
	}
	e.enforced("other", given)
	agree(t)

	e.kill(node2, mps.ControlName+" -f")
	e.restarted("infer")
	e.restarted("other")
	agree(t)
}
