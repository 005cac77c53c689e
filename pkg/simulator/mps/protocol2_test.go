package mps_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
)

const gib = 1 << 30

func TestClientsLimits(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "dgx-h100", 5, 2).start()
	if list := d.ask("get_server_list"); list != "" {
		t.Errorf("servers before the first client: %s", list)
	}
	uuid := d.machine.Spec().GPUs[2].UUID
	p := d.got("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=10G,"+uuid+"=512M")
	a := p.first.MPS
	if a == nil || a.Protocol != 2 || a.Percentage != 25 || len(a.Devices) != 2 || a.Devices[1].UUID != uuid ||
		a.Devices[0].Multiprocessors != 33 || a.Devices[0].Limit != 10*gib || a.Devices[1].Limit != gib/2 {
		t.Fatalf("the client got %+v", p.first)
	}
	p.do("allocate 0 8G", "")
	p.do("allocate 0 3G", mps.ErrOutOfMemory)
	p.do("allocate 1 513M", mps.ErrOutOfMemory)
	p.do("allocate 1 512M", "")
	p.do("allocate 2 1M", mps.ErrInvalidDevice)
	// Each process has its own limit, and all have the GPU's memory.
	other := d.got("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=80G")
	other.do("allocate 0 72G", mps.ErrOutOfMemory)
	p.end()
	patiencetest.Until(t, "the client leaves", func() bool { return strings.Count(d.ask("ps"), "\n") == 2 })
	other.do("allocate 0 72G", "")
	// The server's own limits are the ceiling of clients to come.
	server := d.ask("get_server_list")
	if got := d.ask("set_active_thread_percentage " + server + " 50"); got != "50.0" {
		t.Errorf("set: %s", got)
	}
	d.ask("set_device_pinned_mem_limit " + server + " 0 1G")
	later := d.got("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=60", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2G").first.MPS
	if later.Percentage != 50 || later.Devices[0].Limit != gib {
		t.Errorf("a later client got %+v", later)
	}
	d.refuses(mps.ErrInvalidArgument, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=lots")
}

func TestDefaultsAreOfServersToCome(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "l40s", 0).start()
	for command, want := range map[string]string{
		"get_default_active_thread_percentage":  "100.0",
		"get_default_device_pinned_mem_limit 0": "No limit",
	} {
		if got := d.ask(command); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	d.ask("set_default_active_thread_percentage 40")
	d.ask("set_default_device_pinned_mem_limit 0 900M")
	d.ask("start_server -uid 0")
	server := d.ask("get_server_list")
	for command, want := range map[string]string{
		"get_server_status " + server:                  "ACTIVE",
		"get_active_thread_percentage " + server:       "40.0",
		"get_device_pinned_mem_limit " + server + " 0": "900M",
		"get_client_list " + server:                    "",
		"get_default_client_priority":                  "0",
		"get_server_status 1":                          "Server 1 not found",
		"set_default_active_thread_percentage 101":     `thread percentage "101": give more than 0, and up to 100`,
		"nonsense": `Unknown command "nonsense"`,
	} {
		if got := d.ask(command); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if limit := d.got().first.MPS.Devices[0].Limit; limit != 900<<20 {
		t.Errorf("a client's limit is %d", limit)
	}
}

// TestFault: one client's takes all along, and nobody comes until all have gone.
func TestFault(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "l40s", 0).start()
	guilty, innocent := d.got(), d.got()
	server := d.ask("get_server_list")
	guilty.do("fault", mps.ErrLaunchFailed)
	if l := innocent.line(); !l.Ended || l.Error != mps.ErrLaunchFailed {
		t.Errorf("the other client was told %+v", l)
	}
	guilty.end()
	innocent.end()
	patiencetest.Until(t, "the fault ends", func() bool { return d.ask("get_server_status "+server) == "ACTIVE" })
	d.got().do("allocate 1G", "")
}

func TestFaultLasts(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "l40s", 0).start()
	// A process that is stopped does not leave.
	stuck, guilty := d.got(), d.got()
	if err := stuck.command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	patiencetest.Until(t, "the process stops", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", stuck.command.Process.Pid))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
	guilty.do("fault", mps.ErrLaunchFailed)
	guilty.end()
	server := d.ask("get_server_list")
	if status := d.ask("get_server_status " + server); status != "FAULT" {
		t.Errorf("status %s", status)
	}
	d.refuses(mps.ErrServerNotReady)
	if err := stuck.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	patiencetest.Until(t, "the fault ends", func() bool { return d.ask("get_server_status "+server) == "ACTIVE" })
}

func TestTerminateClient(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "l40s", 0).start()
	p, other := d.got(), d.got()
	server := d.ask("get_server_list")
	if got := d.ask("terminate_client " + server + " " + strconv.Itoa(p.first.PID)); got != "0" {
		t.Errorf("terminating: %q", got)
	}
	if l := p.line(); !l.Ended || l.Error != mps.ErrTerminated {
		t.Errorf("the client was told %+v", l)
	}
	other.do("allocate 1G", "")
}

func TestClientLimit(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "a30", 0)
	m := d.machine
	if err := m.SetMIGMode("0", true); err != nil {
		t.Fatal(err)
	}
	if err := m.Reset("0"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.MakePartition("0", "1g.6gb", nil); err != nil {
		t.Fatal(err)
	}
	state, err := m.State()
	if err != nil {
		t.Fatal(err)
	}
	d.env = append(d.env, "CUDA_VISIBLE_DEVICES="+state.GPUs[0].Instances[0].ComputeInstances[0].UUID)
	d.start()
	for range 12 { // a quarter of 48
		if p := d.got(); p.first.Error != "" {
			t.Fatalf("%+v", p.first)
		}
	}
	d.refuses(mps.ErrMaxClients)
}

// TestOneUserAtATime: another user's client waits until the first one's have gone.
func TestOneUserAtATime(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be two users")
	}
	t.Parallel()
	d := newDaemon(t, "l40s", 0).start()
	roots := d.got()
	others := d.clientAs(65534)
	patiencetest.Until(t, "the other waits", func() bool { return d.ask("get_server_list") != "" })
	server := d.ask("get_server_list")
	roots.end()
	if l := others.line(); l.Error != "" || l.MPS == nil {
		t.Errorf("the other user's client got %+v", l)
	}
	if now := d.ask("get_server_list"); now == server {
		t.Errorf("server %s is there for both", now)
	}
}

func TestMultiUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be two users")
	}
	t.Parallel()
	d := newDaemon(t, "l40s", 0).start("-multiuser-server")
	d.got().do("allocate 1G", "")
	others := d.clientAs(65534)
	if l := others.line(); l.Error != "" || l.MPS == nil {
		t.Errorf("the other user's client got %+v", l)
	}
}

// TestEnds: quit waits for clients, and not longer than it is told; what kills the
// daemon alone does not kill its server.
func TestEnds(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "l40s", 0).start()
	if err := d.machine.SetComputeMode("0", machine.ComputeModeExclusiveProcess); err != nil {
		t.Fatal(err)
	}
	p := d.got()
	d.ask("quit -t 0")
	if l := p.line(); !l.Ended || l.Error != mps.ErrRPC {
		t.Errorf("the client was told %+v", l)
	}
	d.gone("control")

	again := daemonOn(t, d.machine, 0).start()
	p = again.got()
	if err := syscall.Kill(again.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.do("allocate 1G", "")
	third := daemonOn(t, d.machine, 0).start()
	third.refuses(mps.ErrServerNotReady) // the old server has the GPU
	p.end()
	patiencetest.Until(t, "the old server ends", func() bool { return third.got().first.Error == "" })
	os.Remove(again.pipe + "/control") // its cleanup waits for that
}

// TestDoesNotStart where it cannot serve.
func TestDoesNotStart(t *testing.T) {
	t.Parallel()
	refused := func(d *daemon, args ...string) {
		t.Helper()
		for _, way := range []string{"-f", "-d"} {
			output, err := d.program(append([]string{way}, args...)...).CombinedOutput()
			if err == nil || len(output) == 0 {
				t.Errorf("%s %q starts: %s", way, args, output)
			}
		}
	}
	refused(newDaemon(t, "p100", 0))
	refused(newDaemon(t, "t4", 0), "-multiuser-server")
	d := newDaemon(t, "l40s", 0)
	refused(d, "-p", "3")
	refused(d, "-m")
	refused(d, "-S")
	d.start()
	refused(d)
	refused(daemonOn(t, d.machine)) // no devices
	other := daemonOn(t, d.machine, 0)
	other.env = append(other.env, "CUDA_VISIBLE_DEVICES=GPU-00000000-0000-4000-8000-000000000000")
	refused(other)
	c := other.program()
	c.Stdin = strings.NewReader("ps\n")
	if output, err := c.CombinedOutput(); err == nil || !strings.Contains(string(output), "Cannot find MPS control daemon") {
		t.Errorf("a command without a daemon: %s, %v", output, err)
	}
}
