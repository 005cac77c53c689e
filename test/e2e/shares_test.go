package e2e

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestShare: one share is what it was asked to be, for a program that tells of its
// devices and for one that uses them, and goes with its Pods.
func TestShare(t *testing.T) {
	e := alone(t)
	gpu := e.gpu(node1, 0)
	e.apply(claimOf(template("share", shareOf(gpu.Spec.UUID, "10Gi", 25))))
	e.pod("look", fromClaim("share"))
	e.attribute(e.verify("look")[0], "type", "mps")
	e.pod("infer", fromClaim("share"), fills("9G", "2G"))
	got := e.limited("infer")[0].MPS
	if d := got.Devices; len(d) != 1 || d[0].UUID != gpu.Spec.UUID || d[0].Limit != 10<<30 || got.Percentage != 25 {
		t.Errorf("the program sees %+v", got)
	}
	e.enforced("infer", machine.EnforcementBestEffort)
	e.computeMode(node1, 0, machine.ComputeModeExclusiveProcess)
	agree(t)
	e.gone("look")
	e.gone("infer")
	e.computeMode(node1, 0, machine.ComputeModeDefault)
	agree(t)
	e.notMounted(node1)
}

// notMounted: nothing is mounted below the directory of MPS, on the node or where
// dovetail-mps runs.
func (e *env) notMounted(node string) {
	e.Helper()
	left, err := e.Shell(e.ctx, node, `cat /proc/self/mountinfo $(for p in $(pgrep dovetail-mps); do echo /proc/$p/mountinfo; done) | grep ' `+harness.MPSDir+`/' || true`)
	e.must(err)
	if left != "" {
		e.Errorf("mounts are left on %s:\n%s", node, left)
	}
}

// shareTests are claims for shares, each beside the others.
var shareTests = []claimTest{
	{"of any size", template("share", "{deviceClassName: mps.dovetail.dev}"), func(e *env) {
		e.pod("infer", fromTemplate("share"), fills("1M", "100G"))
		got := e.limited("infer")[0].MPS
		consumed := e.claimOfPod("infer").Status.Allocation.Devices.Results[0].ConsumedCapacity["memory"]
		if limit := got.Devices[0].Limit; limit == 0 || limit != uint64(consumed.Value()) || got.Percentage != 100 {
			e.Errorf("the program sees %+v, and the share has %v of memory", got, consumed)
		}
	}},
	{"one for each container", twoShares("", "1Gi", "2Gi"), func(e *env) {
		e.pod("pair", containers("main", "second"), fromTemplate("two"), only("main", "a", "two"), only("second", "b", "two"), fills("1000M", "1100M"))
		got := e.limited("pair")
		if a, b := got[0].MPS, got[1].MPS; a.Devices[0].UUID != b.Devices[0].UUID || a.Devices[0].Limit != 1<<30 || b.Devices[0].Limit != 2<<30 ||
			a.Percentage != 10 || b.Percentage != 20 {
			e.Errorf("the containers see %+v and %+v", a, b)
		}
	}},
	{"shared by two Pods", claimOf(template("shared", share("4Gi", 10))), func(e *env) {
		e.pod("first", fromClaim("shared"), fills("3G", "2G"))
		first := e.limited("first")[0]
		e.pod("second", fromClaim("shared"), fills("3G", "2G"))
		if second := e.limited("second")[0]; second.Devices[0].UUID != first.Devices[0].UUID {
			e.Errorf("the Pods share a claim, but have %+v and %+v", first.Devices, second.Devices)
		}
		check := e.undisturbed("second")
		e.gone("first")
		check()
	}},
	{"for users who are not root", template("share", share("1Gi", 5)), func(e *env) {
		e.pod("infer", fromTemplate("share"), nonRoot, fills("1000M", "100M"))
		e.limited("infer")
	}},
	{"not enforced", claimOf(configuredShare("share", share("1Gi", 5), "enforcement: None")), func(e *env) {
		e.pod("infer", fromClaim("share"), uses("2G"))
		if got, err := e.CUDA(e.ctx, e.namespace, e.ready("infer").Name, "main", 1); err != nil || got[0].Allocated != 2<<30 {
			e.Errorf("the program got %+v, %v", got, err)
		}
		e.enforced("infer", machine.EnforcementNone)
	}},
	{"a partition for two Pods", claimOf(partitionByMPS), func(e *env) {
		e.pod("first", on(node1), fromClaim("part"), fills("2G", "1100M"))
		e.pod("second", on(node1), fromClaim("part"), fills("2G", "1100M"))
		first, second := e.limited("first")[0].MPS, e.limited("second")[0].MPS
		if d := first.Devices[0]; d.UUID[:4] != "MIG-" || d.UUID != second.Devices[0].UUID || d.Limit != 3<<30 || first.Percentage != 50 {
			e.Errorf("the Pods see %+v and %+v", first, second)
		}
		e.enforced("second", machine.EnforcementBestEffort)
		e.gone("first")
		if got := e.runs("second", "--allocate", "1G"); got.Error != "" {
			e.Errorf("after the first Pod has gone, a process in the second gets %+v", got)
		}
	}},
}

func TestShares(t *testing.T) { sideBySide(t, nil, shareTests) }

// TestShareOfTwoGPUs: one control daemon is over both, and the program has a limit for
// each.
func TestShareOfTwoGPUs(t *testing.T) {
	e := alone(t)
	e.apply(twoShares("distinctAttribute: dovetail.dev/uuid", "2Gi", "3Gi"))
	e.pod("infer", on(node1), fromTemplate("two"), uses("2G", "allocate 1 3G", "allocate 0 1M", "allocate 1 1M"))
	e.ready("infer")
	got, err := e.CUDA(e.ctx, e.namespace, "infer", "main", 4)
	e.must(err)
	if d := got[0].Devices; len(d) != 2 || d[0].Limit != 2<<30 || d[1].Limit != 3<<30 || got[0].Error+got[1].Error != "" ||
		got[2].Error != mps.ErrOutOfMemory || got[3].Error != mps.ErrOutOfMemory {
		t.Errorf("the program got %+v", got)
	}
	agree(t)
}

// TestTenShares: Pods of three namespaces have shares of one GPU, each with limits of
// its own; one that does not fit any more gets a share of the next GPU.
func TestTenShares(t *testing.T) {
	all := []*env{alone(t), start(t, nil), start(t, nil)}
	const count = 10
	for i := range count {
		name, e := fmt.Sprintf("pod-%d", i), all[i%len(all)]
		e.apply(template(name, share(fmt.Sprintf("%dGi", i+2), i+1))) // 65Gi and 55 percent
		e.pod(name, on(node1), fromTemplate(name), fills(fmt.Sprintf("%dG", i+1), "1100M"))
	}
	before := all[0].starts(node1)
	for i := range count {
		got := all[i%len(all)].limited(fmt.Sprintf("pod-%d", i))[0].MPS
		if d := got.Devices[0]; d.UUID != all[0].gpu(node1, 0).Spec.UUID || d.Limit != uint64(i+2)<<30 || got.Percentage != float64(i+1) {
			t.Errorf("Pod %d sees %+v", i, got)
		}
	}
	e := all[0]
	e.apply(template("more", share("20Gi", 5)))
	e.pod("eleventh", on(node1), fromTemplate("more"), fills("20G", "1M"))
	if got := e.limited("eleventh")[0].Devices[0].UUID; got != e.gpu(node1, 1).Spec.UUID {
		t.Errorf("the eleventh Pod has %s, want the second GPU", got)
	}
	if after := e.starts(node1); after > before+2 {
		t.Errorf("%d control daemons were started for two GPUs", after-before)
	}
	agree(t)
}

// starts is how often a control daemon was started on a node.
func (e *env) starts(node string) int {
	e.Helper()
	state, err := e.Machine(e.ctx, node)
	e.must(err)
	return state.Runs[mps.ControlName]
}

// enforced waits until the status of a Pod's claim says how well its memory is kept.
func (e *env) enforced(pod string, want machine.Enforcement) {
	e.Helper()
	name := e.claimOfPod(pod).Name
	claims := harness.Set{Client: e.Kube.ResourceV1().RESTClient(), Resource: "resourceclaims", Namespace: e.namespace}
	var has []resourceapi.AllocatedDeviceStatus
	_, err := harness.WaitOne(e.ctx, claims, name, "how claim "+name+" is enforced", func(c *resourceapi.ResourceClaim) (bool, error) {
		if c == nil {
			return false, nil
		}
		has = c.Status.Devices
		for _, d := range has {
			condition := meta.FindStatusCondition(d.Conditions, "MemoryEnforced")
			if condition == nil || condition.Reason != string(want) || (condition.Status == "True") != (want == machine.EnforcementStrict) {
				return false, nil
			}
		}
		return len(has) > 0, nil
	})
	if err != nil {
		e.Fatalf("want %s: %v; the status says %+v", want, err, has)
	}
}
