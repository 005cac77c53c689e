package claim_test

import (
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

func TestPartitionSharedByItsClaim(t *testing.T) {
	w := newWorld(t)
	config := gpuConfig(`"sharing":{"strategy":"MPS","mps":{"activeThreadPercentage":50,"memoryLimit":"2Gi"}}`)
	c := w.allocate("a", config, "mig-1b-00-3g40gb-4", "gpu-43-00")
	devices := w.prepare(c)
	w.check("a")
	d := w.daemons()
	if len(d) != 2 || d[0].Devices[0] != devices[0].UUID || d[1].Devices[0] != devices[1].UUID {
		t.Fatalf("control daemons %+v, devices %+v", d, devices)
	}
	for i := range d {
		if devices[i].Enforcement != machine.EnforcementBestEffort {
			t.Errorf("the memory limit of %s is enforced as %q", devices[i].Name, devices[i].Enforcement)
		}
		w.hasEnv(c, i, "CUDA_MPS_PIPE_DIRECTORY="+d[i].Pipe, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2048M")
	}
	w.unprepare(c)
	w.check()
}

// The driver is loaded anew, and another partition gets the ID that the claim's one had.
func TestSharedPartitionIsAnotherDevice(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", gpuConfig(`"sharing":{"strategy":"MPS"}`), "mig-1b-00-1g10gb-4")
	before := w.prepare(c)[0].UUID
	for _, to := range []simulator.Driver{simulator.DriverUnloaded, simulator.DriverLoaded} {
		w.must(w.Machine.SetDriver(to))
	}
	w.must(w.Machine.SetMIGMode("0", true))
	w.byHand("1g.10gb", 0)
	w.must(w.Settle(t.Context()))
	w.must(w.Machine.Fail("0", simulator.CallStopMPS, simulator.Failure{Times: 1, Error: simulator.FailureUnknown}))
	if problems := w.restart(); len(problems) != 1 {
		t.Errorf("problems %v", problems)
	}
	if now := w.prepare(c)[0].UUID; now == before {
		t.Fatalf("the partition is %s, as before", now)
	}
	w.check("a")
	w.unprepare(c)
	if left := w.daemons(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

// A partition that somebody else has made is shared as it is, and stays.
func TestStaticPartitionSharedByItsClaim(t *testing.T) {
	w := newWorldOf(t, "static-mig")
	c := w.allocate("a", gpuConfig(`"sharing":{"strategy":"MPS"}`), "mig-1b-00-3g40gb-4")
	devices := w.prepare(c)
	if d := w.daemons(); len(d) != 1 || len(d[0].Devices) != 1 || d[0].Devices[0] != devices[0].UUID {
		t.Errorf("control daemons %+v, devices %+v", d, devices)
	}
	w.check("a")
	w.unprepare(c)
	w.check()
}
