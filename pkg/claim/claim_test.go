package claim_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// world is a claimtest.World whose every step must succeed.
type world struct {
	*claimtest.World
	t *testing.T
	m *claim.Manager
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, "dgx-h100")
}

// newWorldOf makes a world with a machine of demo/machines.
func newWorldOf(t *testing.T, name string) *world {
	t.Helper()
	w, err := claimtest.Create(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	out := &world{World: w, t: t}
	out.restart()
	return out
}

// restart is what a new agent does. It returns what recovery found.
func (w *world) restart() []claim.Problem {
	w.t.Helper()
	m, problems, err := w.Manager(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.m = m
	return problems
}

func (w *world) allocate(name, parameters string, devices ...string) *resourceapi.ResourceClaim {
	w.t.Helper()
	c, err := w.Allocate(name, parameters, devices...)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) prepare(c *resourceapi.ResourceClaim) []claim.Device {
	w.t.Helper()
	devices, err := w.m.Prepare(w.t.Context(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	return devices
}

func (w *world) unprepare(c *resourceapi.ResourceClaim) {
	w.t.Helper()
	if err := w.m.Unprepare(w.t.Context(), claimtest.Reference(c)); err != nil {
		w.t.Fatal(err)
	}
}

// refused prepares and wants an error of the class with those words.
func (w *world) refused(c *resourceapi.ResourceClaim, class error, words ...string) {
	w.t.Helper()
	_, err := w.m.Prepare(w.t.Context(), c)
	if failure.ClassOf(err) != class {
		w.t.Fatalf("error %v, want class %v", err, class)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.t.Errorf("%q is not in %q", word, err)
		}
	}
}

func (w *world) check(prepared ...string) {
	w.t.Helper()
	differences, err := w.Check(w.t.Context(), prepared...)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range differences {
		w.t.Error(d)
	}
}

func TestPrepareAndRelease(t *testing.T) {
	w := newWorld(t)
	plain := w.allocate("plain", "", "gpu-1b-00", "gpu-43-00")
	exclusive := w.allocate("exclusive", claimtest.Exclusive, "gpu-52-00")
	devices := w.prepare(plain)
	if len(devices) != 2 || devices[0].Name != "gpu-1b-00" || devices[1].CDIDeviceID != "dovetail.dev/claim=uid-plain_gpu_gpu-43-00" {
		t.Errorf("devices %+v", devices)
	}
	w.prepare(exclusive)
	w.check("plain", "exclusive")
	w.unprepare(exclusive)
	w.check("plain")
	w.unprepare(plain)
	w.check()
}

func TestCallsAreIdempotent(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
	first := w.prepare(c)
	for range 2 {
		if again := w.prepare(c); len(again) != 1 || again[0] != first[0] {
			t.Errorf("again %+v, first %+v", again, first)
		}
		w.restart()
	}
	w.check("a")
	w.unprepare(c)
	w.unprepare(c)
	w.unprepare(w.allocate("never-prepared", "", "gpu-43-00"))
	w.check()
}

// What was set before comes back, whatever it was.
func TestComputeModeComesBack(t *testing.T) {
	w := newWorld(t)
	now, err := w.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	uuid := now.GPUs[0].UUID
	set := func(mode machine.ComputeMode) {
		if err := w.GPUs.SetComputeMode(t.Context(), uuid, mode); err != nil {
			t.Fatal(err)
		}
	}
	get := func() machine.ComputeMode {
		mode, err := w.GPUs.ComputeMode(t.Context(), uuid)
		if err != nil {
			t.Fatal(err)
		}
		return mode
	}
	set(machine.ComputeModeProhibited)
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
	w.prepare(c)
	w.unprepare(c)
	if got := get(); got != machine.ComputeModeProhibited {
		t.Errorf("after release: %s", got)
	}
	w.prepare(c)
	set(machine.ComputeModeDefault) // somebody else, meanwhile
	w.unprepare(c)
	if got := get(); got != machine.ComputeModeDefault {
		t.Errorf("somebody else's mode became %s", got)
	}
}

func TestRepairs(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
	w.prepare(c)
	for name, damage := range map[string]func() error{
		"CDI directory wiped": func() error { return os.RemoveAll(filepath.Join(w.Dir, "cdi")) },
		"compute mode changed by hand": func() error {
			return w.Machine.SetComputeMode("0", machine.ComputeModeDefault)
		},
		"rebooted": func() error {
			return errors.Join(w.Machine.Reboot(), os.RemoveAll(filepath.Join(w.Dir, "cdi")))
		},
	} {
		if err := damage(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w.restart()
		w.prepare(c)
		w.check("a")
	}
	w.unprepare(c)
	w.check()
}

func TestHeldDeviceIsRefusedWithItsHolder(t *testing.T) {
	w := newWorld(t)
	first := w.allocate("first", "", "gpu-1b-00")
	w.prepare(first)
	second := w.allocate("second", "", "gpu-43-00", "gpu-1b-00")
	w.refused(second, failure.Conflict, "gpu-1b-00", "default/first", "uid-first")
	w.check("first")
	w.unprepare(first)
	w.prepare(second)
	w.check("second")
}

func TestAdminAccessChangesNothing(t *testing.T) {
	w := newWorld(t)
	tenant := w.allocate("tenant", claimtest.Exclusive, "gpu-1b-00")
	w.prepare(tenant)
	admin := w.allocate("admin", claimtest.Exclusive, "gpu-1b-00", "gpu-43-00")
	claimtest.Admin(admin)
	if devices := w.prepare(admin); len(devices) != 2 {
		t.Errorf("devices %+v", devices)
	}
	w.check("admin", "tenant")
	w.unprepare(admin)
	w.check("tenant")
}

func TestBadInputLeavesNothing(t *testing.T) {
	const head = `{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig"`
	for name, test := range map[string]struct {
		claim func(w *world) *resourceapi.ResourceClaim
		class error
		words []string
	}{
		"unknown field": {func(w *world) *resourceapi.ResourceClaim {
			return w.allocate("a", head+`,"mode":"x"}`, "gpu-1b-00")
		}, failure.Invalid, []string{"the claim's spec.devices.config", `unknown field "mode"`}},
		"out of range, in the class": {func(w *world) *resourceapi.ResourceClaim {
			c := w.allocate("a", "", "gpu-1b-00")
			c.Status.Allocation.Devices.Config = []resourceapi.DeviceAllocationConfiguration{
				claimtest.Config(resourceapi.AllocationConfigSourceClass, head+`,"computeMode":"Fast"}`, "gpu"),
			}
			return c
		}, failure.Invalid, []string{"DeviceClass", `requests ["gpu"]`, "computeMode", `"Fast"`, "ExclusiveProcess"}},
		"another node's pool": {func(w *world) *resourceapi.ResourceClaim {
			c := w.allocate("a", "", "gpu-1b-00")
			c.Status.Allocation.Devices.Results[0].Pool = "node-2"
			return c
		}, failure.Invalid, []string{"results[0].pool", `"node-2"`, `"node-1"`, "delete the Pod"}},
		"no such device": {func(w *world) *resourceapi.ResourceClaim {
			return w.allocate("a", "", "gpu-1b-00", "gpu-99-00")
		}, failure.Absent, []string{"gpu-99-00", "delete the claim"}},
		"not allocated": {func(w *world) *resourceapi.ResourceClaim {
			c := w.allocate("a", "", "gpu-1b-00")
			c.Status.Allocation = nil
			return c
		}, failure.Conflict, []string{"no longer allocated"}},
		"not reserved": {func(w *world) *resourceapi.ResourceClaim {
			c := w.allocate("a", "", "gpu-1b-00")
			c.Status.ReservedFor = nil
			return c
		}, failure.Conflict, []string{"reserved"}},
		"nothing of ours": {func(w *world) *resourceapi.ResourceClaim {
			c := w.allocate("a", "", "gpu-1b-00")
			c.Status.Allocation.Devices.Results[0].Driver = "gpu.example.com"
			return c
		}, failure.Invalid, []string{"none is of driver dovetail.dev"}},
		"a UID that is a path": {func(w *world) *resourceapi.ResourceClaim {
			c := w.allocate("a", "", "gpu-1b-00")
			c.UID = "../../etc/cdi/x"
			return c
		}, failure.Invalid, []string{"metadata.uid"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.refused(test.claim(w), test.class, test.words...)
			w.check()
		})
	}
}

func TestConfigurationsAreMergedInOrder(t *testing.T) {
	const (
		defaultMode = `{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig","computeMode":"Default"}`
		nothing     = `{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig"}`
	)
	class, own := resourceapi.AllocationConfigSourceClass, resourceapi.AllocationConfigSourceClaim
	for name, test := range map[string]struct {
		configs []resourceapi.DeviceAllocationConfiguration
		want    machine.ComputeMode
	}{
		"class alone":                   {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(class, claimtest.Exclusive)}, machine.ComputeModeExclusiveProcess},
		"claim after class":             {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(own, defaultMode), claimtest.Config(class, claimtest.Exclusive)}, machine.ComputeModeDefault},
		"a field that is left out":      {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(class, claimtest.Exclusive), claimtest.Config(own, nothing)}, machine.ComputeModeExclusiveProcess},
		"the later of two":              {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(own, claimtest.Exclusive), claimtest.Config(own, defaultMode)}, machine.ComputeModeDefault},
		"for another request":           {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(own, claimtest.Exclusive, "other")}, machine.ComputeModeDefault},
		"for the request of which this": {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(own, claimtest.Exclusive, "gpu")}, machine.ComputeModeExclusiveProcess},
		"for this alternative":          {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(own, claimtest.Exclusive, "gpu/big")}, machine.ComputeModeExclusiveProcess},
		"for another alternative":       {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(own, claimtest.Exclusive, "gpu/small")}, machine.ComputeModeDefault},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.allocate("a", "", "gpu-1b-00")
			c.Status.Allocation.Devices.Results[0].Request = "gpu/big"
			c.Status.Allocation.Devices.Config = test.configs
			w.prepare(c)
			now, err := w.Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := now.GPUs[0].ComputeMode; got != test.want {
				t.Errorf("compute mode %s, want %s", got, test.want)
			}
		})
	}
}

func TestLatePrepareDoesNotResurrect(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", "", "gpu-1b-00")
	stale := c.DeepCopy()
	w.prepare(c)
	w.unprepare(c)
	if err := w.Delete("a"); err != nil {
		t.Fatal(err)
	}
	w.refused(stale, failure.Conflict, "released")
	w.check()

	c.Status.ReservedFor = nil // the Pod is gone, the claim stays
	if err := w.Store(c); err != nil {
		t.Fatal(err)
	}
	w.refused(stale, failure.Conflict, "reserved")

	if err := w.Store(stale); err != nil { // another Pod uses it
		t.Fatal(err)
	}
	w.prepare(stale)
	w.check("a")
}

// failing fails the calls to set a compute mode for which it says so.
type failing struct {
	hardware.GPUs
	calls int
	fail  func(call int) error
}

func (f *failing) SetComputeMode(ctx context.Context, uuid string, mode machine.ComputeMode) error {
	f.calls++
	if err := f.fail(f.calls); err != nil {
		return err
	}
	return f.GPUs.SetComputeMode(ctx, uuid, mode)
}

// nth fails the n-th call.
func nth(n int) func(int) error {
	return func(call int) error {
		if call == n {
			return failure.New(failure.Busy, "GPU GPU-x is busy")
		}
		return nil
	}
}

func never(int) error { return nil }

func newFailingWorld(t *testing.T) (*world, *failing) {
	w := newWorld(t)
	hands := &failing{GPUs: w.GPUs, fail: never}
	w.GPUs = hands
	w.restart()
	return w, hands
}

func TestFailedStepIsTakenBackInTheSameCall(t *testing.T) {
	w, hands := newFailingWorld(t)
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00", "gpu-43-00")
	hands.fail = nth(2) // the first GPU is set then
	w.refused(c, failure.Busy, "compute-mode", "GPU-x is busy")
	w.check()
	if hands.calls != 3 {
		t.Errorf("%d calls, want two and one that takes back", hands.calls)
	}
	hands.fail = never
	w.prepare(c)
	w.check("a")
}

func TestFailedReleaseGoesOn(t *testing.T) {
	w, hands := newFailingWorld(t)
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
	w.prepare(c)
	hands.fail = func(int) error { return errors.New("still busy") }
	if err := w.m.Unprepare(t.Context(), claimtest.Reference(c)); err == nil || !strings.Contains(err.Error(), "undo compute-mode: still busy") {
		t.Errorf("release: %v", err)
	}
	hands.fail = never
	w.unprepare(c)
	w.check()
}

// What could not be taken back at once is taken back later, without the kubelet.
func TestFailedRollBackIsMended(t *testing.T) {
	w, hands := newFailingWorld(t)
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00", "gpu-43-00")
	hands.fail = func(call int) error {
		if call > 1 {
			return errors.New("busy")
		}
		return nil
	}
	if _, err := w.m.Prepare(t.Context(), c); err == nil || !strings.Contains(err.Error(), "undo compute-mode") {
		t.Errorf("error %v", err)
	}
	hands.fail = never
	if problems, err := w.m.Mend(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	w.check()
}

// A repair that stops half-way must not be taken for a preparation of which nobody
// was told.
func TestHalfRepairedClaimStaysPrepared(t *testing.T) {
	w, hands := newFailingWorld(t)
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00", "gpu-43-00")
	w.prepare(c)
	for _, gpu := range []string{"0", "1"} {
		if err := w.Machine.SetComputeMode(gpu, machine.ComputeModeDefault); err != nil {
			t.Fatal(err)
		}
	}
	hands.calls, hands.fail = 0, nth(2)
	w.refused(c, failure.Busy, "GPU-x is busy")
	hands.fail = never
	w.restart()
	w.check("a")
}

// A driver that is loaded anew has lost what was set, and has other files.
func TestMendAfterAReload(t *testing.T) {
	w := newWorld(t)
	w.prepare(w.allocate("a", claimtest.Exclusive, "gpu-1b-00"))
	if err := w.Machine.SetComputeMode("0", machine.ComputeModeDefault); err != nil {
		t.Fatal(err)
	}
	store, err := cdi.NewStore(filepath.Join(w.Dir, "cdi"), newDriver{w.Edits})
	if err != nil {
		t.Fatal(err)
	}
	w.m.CDI = store
	if problems, err := w.m.Mend(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	w.check("a")
	content, err := os.ReadFile(filepath.Join(w.Dir, "cdi", "dovetail.dev-claim-uid-a.json"))
	if err != nil || !strings.Contains(string(content), "DRIVER=new") {
		t.Errorf("specification %s, %v", content, err)
	}
}

type newDriver struct{ cdi.Edits }

func (newDriver) Common() (*specs.ContainerEdits, error) {
	return &specs.ContainerEdits{Env: []string{"DRIVER=new"}}, nil
}

// Where NVML cannot be asked, nothing says that a GPU's settings are gone.
func TestReleaseWaitsForALibraryThatIsMissing(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
	w.prepare(c)
	if err := w.Machine.SetDriver(simulator.DriverMissing); err != nil {
		t.Fatal(err)
	}
	if err := w.m.Unprepare(t.Context(), claimtest.Reference(c)); !errors.Is(err, failure.Unreachable) {
		t.Errorf("release: %v", err)
	}
	if records, err := w.m.Records(); err != nil || len(records) != 1 {
		t.Errorf("records %v, %v", records, err)
	}
	if err := w.Machine.SetDriver(simulator.DriverUnloaded); err != nil {
		t.Fatal(err)
	}
	w.unprepare(c) // an unloaded driver has no settings
}

// The kubelet cancels what it no longer wants, and may tell the other agent.
func TestOvertakenCallsDoNothing(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", "", "gpu-1b-00")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.m.Prepare(over, c); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that is over: %v", err)
	}
	w.check()
	w.Crowded = true
	w.restart()
	if err := w.Delete("a"); err != nil {
		t.Fatal(err)
	}
	w.refused(c, failure.Conflict, "released")
	w.check()
}

func TestLostGPU(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
	w.prepare(c)
	if err := w.Machine.Inject("0", simulator.FaultLost); err != nil {
		t.Fatal(err)
	}
	w.refused(c, failure.Absent, "gpu-1b-00")
	w.unprepare(c) // there is nothing to put back
	w.check()
}

// The agent that is being replaced may be in the middle of a call, on a GPU that
// takes its time: the new one starts nevertheless, and leaves that claim alone.
func TestRecoveryLeavesTheOtherAgentsWork(t *testing.T) {
	w := newWorld(t)
	old := claimtest.Hold(w.GPUs)
	w.GPUs = old
	w.restart()
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
	prepared := make(chan error)
	go func() {
		_, err := w.m.Prepare(t.Context(), c)
		prepared <- err
	}()
	<-old.Entered
	if _, problems, err := w.Manager(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the new agent: %v, %v", problems, err)
	}
	close(old.Let)
	if err := <-prepared; err != nil {
		t.Error(err)
	}
	w.check("a")
}

func TestDamagedRecordIsRebuilt(t *testing.T) {
	for name, content := range map[string]string{"truncated": `{"version":1,"cl`, "empty": "", "zeros": "\x00\x00\x00"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
			w.prepare(c)
			if err := os.WriteFile(filepath.Join(w.Dir, "claims", "uid-a.json"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			w.refused(w.allocate("b", "", "gpu-43-00"), nil) // others go on
			w.refused(w.allocate("thief", "", "gpu-1b-00"), failure.Conflict, "default/a")

			problems := w.restart()
			if len(problems) != 1 || !errors.Is(problems[0].Err, failure.Corrupt) || !strings.Contains(problems[0].Err.Error(), "set-aside") {
				t.Errorf("problems %v", problems)
			}
			w.check("a", "b")
			w.refused(w.allocate("c", "", "gpu-1b-00"), failure.Conflict, "default/a")
			w.unprepare(c) // the compute mode comes back, from the copy
			w.check("b")
		})
	}
}

// The kubelet's next call puts a record back, too, without a restart.
func TestRecordIsPutBackByTheNextCall(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"lost":    os.Remove,
		"damaged": func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
			w.prepare(c)
			record := filepath.Join(w.Dir, "claims", "uid-a.json")
			if err := damage(record); err != nil {
				t.Fatal(err)
			}
			w.prepare(c)
			w.check("a")
			if err := damage(record); err != nil {
				t.Fatal(err)
			}
			w.unprepare(c)
			w.check()
			if len(w.Damage) != 2 || !errors.Is(w.Damage[0], failure.Corrupt) {
				t.Errorf("told: %v", w.Damage)
			}
		})
	}
}

func TestLostRecordIsRestored(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
	w.prepare(c)
	if err := os.Remove(filepath.Join(w.Dir, "claims", "uid-a.json")); err != nil {
		t.Fatal(err)
	}
	if problems := w.restart(); len(problems) != 1 {
		t.Errorf("problems %v", problems)
	}
	w.check("a")
	w.unprepare(c)
	w.check()
}

func TestDamagedBeyondRepair(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", "", "gpu-1b-00")
	w.prepare(c)
	for _, path := range []string{"claims/uid-a.json", "cdi/dovetail.dev-claim-uid-a.json"} {
		if err := os.WriteFile(filepath.Join(w.Dir, path), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if problems := w.restart(); len(problems) != 1 || !strings.Contains(problems[0].Err.Error(), "could not be rebuilt") {
		t.Errorf("problems %v", problems)
	}
	w.prepare(c) // the kubelet's next call
	w.check("a")
	w.unprepare(c)
	w.check()
}

func TestRecordOfANewerVersionIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", "", "gpu-1b-00")
	w.prepare(c)
	path := filepath.Join(w.Dir, "claims", "uid-a.json")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(content), `"version":1`, `"version":99`, 1)
	if err := os.WriteFile(path, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	if problems := w.restart(); len(problems) != 1 || !strings.Contains(problems[0].Err.Error(), "version 99") {
		t.Errorf("problems %v", problems)
	}
	w.refused(c, failure.Unsupported, "run the version that wrote it")
	w.refused(w.allocate("b", "", "gpu-1b-00"), failure.Conflict, "default/a")
	if err := w.m.Unprepare(t.Context(), claimtest.Reference(c)); !errors.Is(err, failure.Unsupported) {
		t.Errorf("release: %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != newer {
		t.Errorf("the record was changed: %v", err)
	}
}

func TestReconcileReleasesWhatIsGone(t *testing.T) {
	w := newWorld(t)
	kept := w.allocate("kept", "", "gpu-1b-00")
	gone := w.allocate("gone", claimtest.Exclusive, "gpu-43-00")
	replaced := w.allocate("replaced", "", "gpu-52-00")
	free := w.allocate("deallocated", "", "gpu-61-00")
	for _, c := range []*resourceapi.ResourceClaim{kept, gone, replaced, free} {
		w.prepare(c)
	}
	if err := w.Delete("gone"); err != nil {
		t.Fatal(err)
	}
	replaced.UID = "another"
	free.Status.Allocation = nil
	for _, c := range []*resourceapi.ResourceClaim{replaced, free} {
		if err := w.Store(c); err != nil {
			t.Fatal(err)
		}
	}
	w.restart()
	r, err := w.m.Reconcile(t.Context())
	if err != nil || len(r.Problems) > 0 || len(r.Released) != 3 || r.Waiting != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	w.check("kept")
}

// A claim deleted by force can be survived by its Pod, which the kubelet knows.
func TestReconcileLeavesWhatPodsStillHave(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("gone", claimtest.Exclusive, "gpu-1b-00")
	w.prepare(c)
	if err := w.Delete("gone"); err != nil {
		t.Fatal(err)
	}
	w.InUse = map[string]bool{"gone": true}
	w.restart()
	reconcile := func(released, waiting int) {
		t.Helper()
		r, err := w.m.Reconcile(t.Context())
		if err != nil || len(r.Problems) > 0 || len(r.Released) != released || r.Waiting != waiting {
			t.Errorf("%+v, %v; want %d released, %d waiting", r, err, released, waiting)
		}
	}
	reconcile(0, 1)
	w.refused(w.allocate("next", "", "gpu-1b-00"), failure.Conflict, "default/gone")
	w.check("gone")

	w.InUse["gone"] = false
	w.m.Patience = time.Hour // the kubelet has its time first
	reconcile(0, 1)
	w.m.Patience = 0
	reconcile(1, 0)
	w.check()
}

// A claim that outlives its Pods can be allocated anew, here or elsewhere.
func TestClaimAllocatedAnew(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
	w.prepare(c)
	again := w.allocate("a", "", "gpu-43-00")
	if devices := w.prepare(again); len(devices) != 1 || devices[0].Name != "gpu-43-00" {
		t.Errorf("devices %+v", devices)
	}
	w.check("a")

	again.Status.Allocation.Devices.Results[0].Pool = "node-2"
	if err := w.Store(again); err != nil {
		t.Fatal(err)
	}
	if r, err := w.m.Reconcile(t.Context()); err != nil || len(r.Released) != 1 {
		t.Errorf("allocated on another node: %+v, %v", r, err)
	}
	w.check()
}

// A reboot ends what a record stands for; it can also bring back records that were
// removed just before a power cut.
func TestRecordsOfAnEarlierBootHoldNothing(t *testing.T) {
	w := newWorld(t)
	old := w.allocate("old", claimtest.Exclusive, "gpu-1b-00")
	w.prepare(old)
	if err := errors.Join(w.Machine.Reboot(), os.RemoveAll(filepath.Join(w.Dir, "cdi"))); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.prepare(w.allocate("new", "", "gpu-1b-00"))
	if err := w.Delete("old"); err != nil {
		t.Fatal(err)
	}
	if r, err := w.m.Reconcile(t.Context()); err != nil || len(r.Released) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	w.check("new")
}

// Another GPU in the same slot has the same name.
func TestExchangedGPU(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", "", "gpu-1b-00")
	w.prepare(c)
	now, err := w.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now.GPUs[0].UUID = "GPU-new"
	w.m.Machine = func() *machine.Machine { return now }
	w.m.GPUs = renamed{w.GPUs}
	if devices := w.prepare(c); devices[0].UUID != "GPU-new" {
		t.Errorf("devices %+v", devices)
	}
}

// renamed answers for a GPU that the simulator does not know.
type renamed struct{ hardware.GPUs }

func (renamed) ComputeMode(context.Context, string) (machine.ComputeMode, error) {
	return machine.ComputeModeDefault, nil
}

func (renamed) Partitions(context.Context, string) (hardware.Partitions, error) {
	return hardware.Partitions{}, nil
}

func TestAnAdminSeesADeviceTwice(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", "", "gpu-1b-00", "gpu-1b-00")
	claimtest.Admin(c)
	c.Status.Allocation.Devices.Results[1].Request = "again"
	devices := w.prepare(c)
	if len(devices) != 2 || devices[0].CDIDeviceID == devices[1].CDIDeviceID {
		t.Errorf("devices %+v", devices)
	}
}
