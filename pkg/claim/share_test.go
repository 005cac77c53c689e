package claim_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// share puts a claim with shares into the API.
func (w *world) share(name, parameters string, shares ...claimtest.Share) *resourceapi.ResourceClaim {
	w.t.Helper()
	c, err := w.AllocateShares(name, parameters, shares...)
	w.must(err)
	return c
}

// mpsShare is a share of the first GPU.
func mpsShare(id string) claimtest.Share {
	return claimtest.Share{Request: "r", Device: "mps-1b-00", ID: id, Memory: "10Gi", Compute: 25}
}

func gpuConfig(fields string) string {
	return `{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig",` + fields + `}`
}

// environment is what the runtime is told for the i-th device of a claim.
func (w *world) edits(c *resourceapi.ResourceClaim, i int) specs.ContainerEdits {
	w.t.Helper()
	content, err := os.ReadFile(w.specification(c.Name))
	w.must(err)
	var spec specs.Spec
	w.must(json.Unmarshal(content, &spec))
	return spec.Devices[i].ContainerEdits
}

func (w *world) hasEnv(c *resourceapi.ResourceClaim, i int, variables ...string) {
	w.t.Helper()
	for _, v := range variables {
		if env := w.edits(c, i).Env; !slices.Contains(env, v) {
			w.t.Errorf("device %d has environment %q, want %s", i, env, v)
		}
	}
}

func (w *world) daemons() []simulator.MPSDaemon {
	w.t.Helper()
	state, err := w.Machine.State()
	w.must(err)
	return state.MPS
}

// The first share starts what the last one stops, whoever that is.
func TestSharesOfOneGPU(t *testing.T) {
	for _, name := range []string{"dgx-h100", "mps-v3"} {
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}} {
			w := newWorldOf(t, name)
			var names []string
			var claims []*resourceapi.ResourceClaim
			for i := range 3 {
				c := w.share(fmt.Sprint("c", i), "", mpsShare(fmt.Sprint("share-", i)))
				w.prepare(c)
				names, claims = append(names, c.Name), append(claims, c)
				w.check(names...)
			}
			if d := w.daemons(); len(d) != 1 || d[0].Started != 1 {
				t.Fatalf("control daemons %+v", d)
			}
			w.restart()
			w.check(names...)
			for _, i := range order {
				w.unprepare(claims[i])
				names = slices.DeleteFunc(names, func(n string) bool { return n == claims[i].Name })
				w.check(names...)
			}
		}
	}
}

func TestLimitsOfAShare(t *testing.T) {
	w := newWorld(t) // protocol 2: in the environment
	c := w.share("a", "", mpsShare("share-a"))
	devices := w.prepare(c)
	if devices[0].ShareID != "share-a" || devices[0].Enforcement != machine.EnforcementBestEffort {
		t.Errorf("devices %+v", devices)
	}
	d := w.daemons()[0]
	w.hasEnv(c, 0, "CUDA_MPS_PIPE_DIRECTORY="+d.Pipe, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=10240M")

	w = newWorldOf(t, "mps-v3") // protocol 3: in a namespace
	label := w.m.Machine().GPUs[0].Address.Label()
	share := mpsShare("share-a")
	share.Device = "mps-" + label
	w.refused(w.share("b", gpuConfig(`"enforcement":"Strict"`), share), failure.Unsupported, "the nearest that works is BestEffort")
	w.CgroupV2 = true // the driver can limit containers, too
	w.restart()
	c = w.share("a", gpuConfig(`"enforcement":"Strict"`), share)
	if devices := w.prepare(c); devices[0].Enforcement != machine.EnforcementStrict {
		t.Errorf("devices %+v", devices)
	}
	d = w.daemons()[0]
	w.hasEnv(c, 0, fmt.Sprintf("LIMIT_%s=%d", d.Devices[0], 10<<30))
	limits, ok := d.Namespaces["share-share-a"]
	if uuid := d.Devices[0]; !ok || limits.ThreadPercentage != 25 || limits.Memory[uuid] != 10<<30 {
		t.Errorf("namespaces %+v", d.Namespaces)
	}
	for _, v := range w.edits(c, 0).Env {
		if strings.HasPrefix(v, "CUDA_MPS_PINNED") || v == "CUDA_MPS_PIPE_DIRECTORY="+d.Pipe {
			t.Errorf("environment has %s", v)
		}
	}
}

// A GPU of which the driver limits nothing has MPS's limits, whatever its neighbour has:
// a share of it that asks for no level starts without the driver's.
func TestGPUWithoutLimitsOfTheDriver(t *testing.T) {
	w := newWorldOf(t, "mps-v3")
	w.CgroupV2 = true
	gpus := w.m.Machine().GPUs
	w.must(w.Machine.Inject(gpus[1].UUID, simulator.FaultNoMemoryLimits))
	w.restart()
	share := func(gpu int) claimtest.Share {
		s := mpsShare(fmt.Sprint("share-", gpu))
		s.Device = "mps-" + gpus[gpu].Address.Label()
		return s
	}
	turn := claimtest.Share{Request: "r", Device: "timeslice-" + gpus[1].Address.Label(), ID: "turn", Memory: "1Gi"}
	var last *resourceapi.ResourceClaim
	for i, want := range []machine.Enforcement{machine.EnforcementStrict, machine.EnforcementBestEffort} {
		c := w.share(fmt.Sprint("c", i), "", share(i))
		if devices := w.prepare(c); devices[0].Enforcement != want {
			t.Errorf("GPU %d: %s, want %s", i, devices[0].Enforcement, want)
		}
		limited := slices.Contains(w.edits(c, 0).Env, fmt.Sprintf("LIMIT_%s=%d", gpus[i].UUID, 10<<30))
		if limited != (want == machine.EnforcementStrict) {
			t.Errorf("GPU %d: the hook is asked for a limit: %t", i, limited)
		}
		if limits := w.daemons()[i].Namespaces["share-share-"+fmt.Sprint(i)]; limits.Memory[gpus[i].UUID] != 10<<30 {
			t.Errorf("GPU %d: MPS has %+v", i, limits)
		}
		last = c
	}
	strict := share(1)
	strict.ID = "strict"
	w.refused(w.share("strict", gpuConfig(`"enforcement":"Strict"`), strict), failure.Unsupported, gpus[1].UUID, "the nearest that works is BestEffort", "memoryEnforcement")
	w.unprepare(last)
	if devices := w.prepare(w.share("turn", "", turn)); devices[0].Enforcement != machine.EnforcementNone {
		t.Errorf("a time slice: %s", devices[0].Enforcement)
	}
}

// Each request has its own limits, also of the same GPU; the daemon is one over all.
func TestOneClaimWithSeveralShares(t *testing.T) {
	w := newWorld(t)
	second := claimtest.Share{Request: "small", Device: "mps-1b-00", ID: "2", Memory: "1Gi", Compute: 5}
	other := claimtest.Share{Request: "r", Device: "mps-43-00", ID: "3", Memory: "10Gi", Compute: 25}
	c := w.share("a", "", other, second, mpsShare("1"))
	w.prepare(c)
	w.check("a")
	w.hasEnv(c, 0, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=10240M,1=10240M", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25")
	w.hasEnv(c, 1, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1024M,1=10240M", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=5")
	if d := w.daemons(); len(d) != 1 || len(d[0].Devices) != 2 || d[0].Devices[0] != w.m.Machine().GPUs[0].UUID {
		t.Errorf("control daemons %+v", d)
	}
	alone := w.share("b", "", mpsShare("4"))
	w.refused(alone, failure.Conflict, "claim default/a")
	w.check("a")
	w.unprepare(c)
	w.prepare(alone)
	w.check("b")
}

// What is out as one kind is not out as another.
func TestKindsExcludeEachOther(t *testing.T) {
	turn := claimtest.Share{Request: "r", Device: "timeslice-1b-00", ID: "t", Memory: "1Gi"}
	w := newWorld(t)
	shared := w.share("shared", "", mpsShare("1"))
	w.prepare(shared)
	for _, device := range []string{"gpu-1b-00", "mig-1b-00-1g10gb-4"} {
		w.refused(w.allocate("alone", "", device), failure.Conflict, "still held for claim default/shared")
	}
	w.refused(w.share("turn", "", turn), failure.Conflict, "shared as mps-1b-00", "default/shared")
	w.unprepare(shared)
	w.prepare(w.allocate("small", "", "mig-1b-00-1g10gb-4"))
	w.refused(w.share("turn", "", turn), failure.Conflict, "default/small")
	w.refused(shared, failure.Conflict, "default/small")
	w.check("small")
}

func TestTimeSlices(t *testing.T) {
	w := newWorld(t)
	uuid := w.m.Machine().GPUs[0].UUID
	w.must(w.Sharing.SetTimeSlice(t.Context(), uuid, machine.TimeSliceMedium)) // by hand
	turn := func(name, interval string) *resourceapi.ResourceClaim {
		config := ""
		if interval != "" {
			config = gpuConfig(`"sharing":{"timeSlicing":{"interval":"` + interval + `"}}`)
		}
		return w.share(name, config, claimtest.Share{Request: "r", Device: "timeslice-1b-00", ID: name, Memory: "1Gi"})
	}
	is := func(want machine.TimeSlice) {
		t.Helper()
		if got, err := w.Sharing.TimeSlice(t.Context(), uuid); err != nil || got != want {
			t.Errorf("time slice %s, %v, want %s", got, err, want)
		}
	}
	whatever, first, second := turn("whatever", ""), turn("first", "Long"), turn("second", "Long")
	w.prepare(whatever)
	is(machine.TimeSliceMedium)
	w.prepare(first)
	w.prepare(second)
	is(machine.TimeSliceLong)
	w.refused(turn("other", "Short"), failure.Conflict, "sharing.timeSlicing.interval: Short", "default/", "Long")
	w.unprepare(first)
	is(machine.TimeSliceLong)
	w.unprepare(second)
	is(machine.TimeSliceMedium)
	w.unprepare(whatever)
	is(machine.TimeSliceMedium)
}

// A GPU that an administrator has left to one process is not for several.
func TestTurnsOfAnExclusiveGPU(t *testing.T) {
	w := newWorld(t)
	uuid := w.m.Machine().GPUs[0].UUID
	nothing := gpuConfig(`"sharing":{"strategy":"TimeSlicing","timeSlicing":{}}`)
	c := w.share("a", nothing, claimtest.Share{Request: "r", Device: "timeslice-1b-00", ID: "1", Memory: "1Gi"})
	w.must(w.GPUs.SetComputeMode(t.Context(), uuid, machine.ComputeModeExclusiveProcess))
	w.refused(c, failure.Conflict, "timeslice-1b-00", "compute mode ExclusiveProcess", "nvidia-smi -i "+uuid+" -c 0")
	w.must(w.GPUs.SetComputeMode(t.Context(), uuid, machine.ComputeModeDefault))
	w.prepare(c)
	w.check("a")
}

func TestLockedConfiguration(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", gpuConfig(`"computeMode":"Default"`), "gpu-1b-00")
	class := claimtest.Config(resourceapi.AllocationConfigSourceClass, gpuConfig(`"computeMode":"ExclusiveProcess","locked":["computeMode"]`))
	c.Status.Allocation.Devices.Config = append(c.Status.Allocation.Devices.Config, class)
	w.must(w.Store(c))
	w.refused(c, failure.Invalid, "computeMode", "the DeviceClass has locked it", "the claim's spec.devices.config")
	w.check()
}
