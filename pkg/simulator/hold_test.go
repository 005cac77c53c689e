package simulator_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// holder names a machine's root: the test's program is then a process that holds the
// first GPU's first instance, and nothing else.
const holder = "SIMULATOR_TEST_HOLDER"

func TestMain(m *testing.M) {
	root := os.Getenv(holder)
	if root == "" {
		os.Exit(m.Run())
	}
	machine, err := simulator.Open(root)
	if err == nil {
		_, err = machine.Hold("0", 1, 0)
	}
	fmt.Println("held", err)
	select {}
}

// TestReleaseAtOnce: also while a child that is being started has the files open, too.
func TestReleaseAtOnce(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	hold, err := m.Hold("0")
	must(t, err)
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range entries {
		path, _ := os.Readlink("/proc/self/fd/" + e.Name())
		fd, err := strconv.Atoi(e.Name())
		if must(t, err); !strings.HasPrefix(path, m.Root()) {
			continue
		}
		child, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		must(t, err)
		defer unix.Close(child)
	}
	if err := m.Reset("0"); !errors.Is(err, failure.Busy) {
		t.Errorf("reset while it is held: %v", err)
	}
	hold.Release()
	must(t, m.Reset("0"))
}

// TestHoldEndsWithItsProcess, which can be found by the device that it has open.
func TestHoldEndsWithItsProcess(t *testing.T) {
	m := simulatortest.New(t, "static-mig")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holder+"="+m.Root())
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	defer cmd.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held <nil>\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if os.Geteuid() == 0 && !opens(t, cmd.Process.Pid, unix.Mkdev(511, uint32(gpu(t, m, 0).Capability(1, 0)))) {
		t.Error("the holder has no device open")
	}
	for what, err := range map[string]error{
		"compute instance": m.DestroyComputeInstance("0", 1, 0), "reset": m.Reset("0"),
	} {
		if !errors.Is(err, failure.Busy) {
			t.Errorf("%s while it is held: %v", what, err)
		}
	}
	must(t, m.DestroyPartition("0", 3)) // another one
	must(t, cmd.Process.Kill())
	cmd.Wait()
	must(t, m.DestroyPartition("0", 1))
}

// opens says whether a process has that device open.
func opens(t *testing.T, pid int, device uint64) bool {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	must(t, err)
	for _, file := range files {
		var stat unix.Stat_t
		if unix.Stat(file, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFCHR && stat.Rdev == device {
			return true
		}
	}
	return false
}

func TestHolds(t *testing.T) {
	m := simulatortest.New(t, "static-mig")
	in, err := m.MakeGPUInstance("1", 9, nil)
	must(t, err)
	_, err = m.MakeComputeInstance("1", in.ID, 3)
	must(t, err)
	first, err := m.Hold("1", in.ID)
	must(t, err)
	second, err := m.Hold("1", in.ID)
	must(t, err)
	if os.Geteuid() == 0 && len(first.Missing) > 0 {
		t.Errorf("there is no %q", first.Missing)
	}
	if err := m.DestroyComputeInstance("1", in.ID, 0); !errors.Is(err, failure.Busy) {
		t.Errorf("with its GPU instance held: %v", err)
	}
	first.Release()
	if err := m.DestroyComputeInstance("1", in.ID, 0); !errors.Is(err, failure.Busy) {
		t.Errorf("with one of two holders gone: %v", err)
	}
	second.Release()
	must(t, m.DestroyComputeInstance("1", in.ID, 0))
	third, err := m.Hold("1", in.ID)
	must(t, err)
	if err := m.DestroyGPUInstance("1", in.ID); !errors.Is(err, failure.Busy) {
		t.Errorf("the GPU instance while it is held: %v", err)
	}
	third.Release()
	must(t, m.DestroyGPUInstance("1", in.ID))

	whole, err := m.Hold("1")
	must(t, err)
	for _, err := range []error{m.SetMIGMode("1", false), m.Reset("1")} {
		if !errors.Is(err, failure.Busy) {
			t.Errorf("the GPU while it is held: %v", err)
		}
	}
	must(t, m.SetMIGMode("2", true)) // another one
	whole.Release()
	must(t, m.SetMIGMode("1", false))
	for _, ids := range [][]int{{1}, {1, 0}} {
		if _, err := m.Hold("1", ids...); !errors.Is(err, failure.Absent) {
			t.Errorf("instance %v is not there: %v", ids, err)
		}
	}
}

func TestHoldWithoutNode(t *testing.T) {
	m := simulatortest.New(t, "static-mig")
	node := filepath.Join(m.Root(), simulator.CapabilityNode(gpu(t, m, 0).Capability(1)))
	if err := os.Remove(node); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	hold, err := m.Hold("0", 1)
	if err != nil || strings.Join(hold.Missing, " ") != node {
		t.Fatalf("missing %q, %v", hold.Missing, err)
	}
	defer hold.Release()
	if err := m.DestroyComputeInstance("0", 1, 0); !errors.Is(err, failure.Busy) {
		t.Errorf("while it is held: %v", err)
	}
}
