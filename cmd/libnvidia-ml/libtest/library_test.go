// Package libtest tests the simulated NVML from outside, through go-nvml, in
// processes of its own: a process that has opened the library keeps it.
package libtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
	"github.com/dovetail-dra/dovetail/pkg/simulator/tree"
)

// childVariable names the check that this program makes as a child, and
// libraryVariable the library that it opens.
const (
	childVariable   = "LIBTEST_CHILD"
	libraryVariable = "LIBTEST_LIBRARY"
)

// checks run in children. They report what they saw by printing it.
var checks = map[string]func(nvml.Interface){
	"uuids":    printUUIDs,
	"memory":   printResident,
	"readonly": printSetComputeMode,
	"signals":  printSignals,
}

func TestMain(m *testing.M) {
	if check, ok := checks[os.Getenv(childVariable)]; ok {
		check(nvml.New(nvml.WithLibraryPath(os.Getenv(libraryVariable))))
		return
	}
	os.Exit(m.Run())
}

// child runs a check with the machine's own library, and returns its output.
func child(t *testing.T, check string, m *simulatortest.Machine, wrap ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(wrap, self)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, simulator.RootVariable+"=") {
			command.Env = append(command.Env, variable)
		}
	}
	command.Env = append(command.Env, childVariable+"="+check,
		libraryVariable+"="+filepath.Join(m.Root(), tree.LibraryDir, "libnvidia-ml.so.1"))
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", check, err, output)
	}
	return strings.TrimSpace(string(output))
}

func printUUIDs(library nvml.Interface) {
	fmt.Println(library.Init())
	count, _ := library.DeviceGetCount()
	for i := range count {
		device, _ := library.DeviceGetHandleByIndex(i)
		uuid, _ := device.GetUUID()
		fmt.Println(uuid)
	}
}

func TestFindsItsMachineByItsOwnPlace(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "gb200")
	want := "Success"
	for _, g := range m.Spec().GPUs {
		want += "\n" + g.UUID
	}
	if got := child(t, "uuids", m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAnswersThatThereIsNoDriver(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "t4")
	if err := os.Remove(filepath.Join(m.Root(), simulator.StateDir, "state.json")); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := strings.Cut(child(t, "uuids", m), "\n"); got != "Driver Not Loaded" {
		t.Errorf("outside a machine nvmlInit answers %q", got)
	}
}

func printSetComputeMode(library nvml.Interface) {
	library.Init()
	device, _ := library.DeviceGetHandleByIndex(0)
	fmt.Println(int(device.SetComputeMode(nvml.COMPUTEMODE_EXCLUSIVE_PROCESS)))
}

func TestReadOnlyMachine(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "t4")
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount the machine read-only")
	}
	script := fmt.Sprintf("mount --bind '%[1]s' '%[1]s' && mount -o remount,bind,ro '%[1]s' && exec \"$0\"", m.Root())
	if got := child(t, "readonly", m, "unshare", "--mount", "sh", "-c", script); got != strconv.Itoa(int(nvml.ERROR_NO_PERMISSION)) {
		t.Errorf("changing a machine that is mounted read-only: %s, want code %d", got, nvml.ERROR_NO_PERMISSION)
	}
	if got := child(t, "readonly", m); got != "0" {
		t.Errorf("changing a machine: %s, want code 0", got)
	}
}

// residentLimit is how much the library may add to a process, in KiB.
const residentLimit = 12 << 10

func printResident(library nvml.Interface) {
	before := resident()
	library.Init()
	count, _ := library.DeviceGetCount()
	for range 1000 {
		for i := range count {
			device, _ := library.DeviceGetHandleByIndex(i)
			device.GetName()
		}
	}
	fmt.Println(resident() - before)
}

func resident() int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	kib, err := strconv.Atoi(regexp.MustCompile(`VmRSS:\s*(\d+) kB`).FindStringSubmatch(string(status))[1])
	if err != nil {
		panic(err)
	}
	return kib
}

// raceDetector says whether the process that opens the library has one.
var raceDetector bool

func TestResidentMemory(t *testing.T) {
	if raceDetector {
		t.Skip("needs a build without -race, which has memory of its own for that of others")
	}
	m := simulatortest.NewWithLibrary(t, "sixteen")
	added, err := strconv.Atoi(child(t, "memory", m))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the library adds %d KiB to the process", added)
	if added > residentLimit {
		t.Errorf("the library adds %d KiB to the process, more than %d", added, residentLimit)
	}
}

var nothing *int

// printSignals does what needs the process's own signal handlers: stopping a
// loop that never yields (SIGURG), and recovering from a nil pointer (SIGSEGV).
func printSignals(library nvml.Interface) {
	library.Init()
	var stop, running atomic.Bool
	go func() {
		running.Store(true)
		for !stop.Load() {
		}
	}()
	for !running.Load() {
		runtime.Gosched()
	}
	runtime.GC() // waits for every goroutine to stop
	stop.Store(true)
	defer func() { fmt.Println(recover()) }()
	fmt.Println(*nothing)
}

func TestLeavesSignalsToTheProcess(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "t4")
	want := "runtime error: invalid memory address or nil pointer dereference"
	if got := child(t, "signals", m); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
