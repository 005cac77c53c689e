package holders

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/capability"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// hold starts a process that has the device open, without opening it: there is no
// driver behind it.
func hold(t testing.TB, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	holder := exec.CommandContext(t.Context(), "cat", "/dev/stdin", "--", "secret")
	holder.ExtraFiles = []*os.File{file}
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = holder.Wait()
	})
	return holder.Process.Pid
}

// node makes a device node under a name of its own, as another mount namespace
// could have it.
func node(t *testing.T, major, minor uint32) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node")
	if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(major, minor))); err != nil {
		t.Skipf("device nodes cannot be made here (CAP_MKNOD): %v", err)
	}
	return path
}

func pids(holders []Holder) []int {
	var pids []int
	for _, h := range holders {
		pids = append(pids, h.PID)
	}
	return pids
}

// nobody allows for a process of the machine that even root may not look at.
func nobody(found []Holder, err error) bool {
	return len(found) == 0 && (err == nil || errors.Is(err, failure.Unsupported))
}

func TestHoldersOfAPartition(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	proc := filepath.Join(m.Root(), "proc")
	table, err := capability.Read(proc)
	if err != nil {
		t.Fatal(err)
	}
	gpu := &machine.GPU{Minor: 5}
	nodes, err := table.Partition(gpu.Minor, 9, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := NewFinder("/proc", proc)
	if found, err := f.OfInstance(gpu, 9); !nobody(found, err) {
		t.Fatalf("before: %v, %v", found, err)
	}
	ofInstance := hold(t, node(t, nodes[0].Major, nodes[0].Minor))
	ofCompute := hold(t, node(t, nodes[1].Major, nodes[1].Minor))
	ofGPU := hold(t, node(t, majorGPU, 5))
	found, err := f.OfInstance(gpu, 9)
	if err != nil {
		t.Fatal(err)
	}
	want := []int{ofInstance, ofCompute}
	slices.Sort(want)
	if got := pids(found); !slices.Equal(got, want) {
		t.Errorf("of the partition %v, want %v", got, want)
	}
	for _, none := range []struct {
		gpu      *machine.GPU
		instance int
	}{{gpu, 10}, {&machine.GPU{Minor: 4}, 9}} {
		if found, err := f.OfInstance(none.gpu, none.instance); !nobody(found, err) {
			t.Errorf("of GPU %d, instance %d: %v, %v", none.gpu.Minor, none.instance, found, err)
		}
	}
	if found, err := f.OfGPU(gpu); err != nil || !slices.Equal(pids(found), []int{ofGPU}) {
		t.Errorf("of the GPU %v, %v", found, err)
	}
	nine := 9
	for want, instance := range map[int]*int{2: &nine, 1: nil} {
		names, err := f.Names(gpu, instance)
		if err != nil || len(names) != want || !strings.HasPrefix(names[0], "cat (process ") {
			t.Errorf("names of instance %v: %q, %v", instance, names, err)
		}
	}
}

func TestNoMIG(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	if err := os.RemoveAll(filepath.Join(m.Root(), "proc/driver/nvidia-caps")); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFinder("/proc", filepath.Join(m.Root(), "proc")).OfInstance(&machine.GPU{}, 1); !errors.Is(err, failure.Absent) {
		t.Error(err)
	}
}

// full is a device that everybody may have, and hardly anybody has, open.
const full = "/dev/full"

var fullNumber = map[uint64]bool{unix.Mkdev(1, 7): true}

func TestHolderIsNamedAndThisProcessIsNot(t *testing.T) {
	own, err := os.Open(full)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	pid := hold(t, full)
	found, err := NewFinder("/proc", "").find(fullNumber)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(pids(found), os.Getpid()) {
		t.Error("this process is named")
	}
	i := slices.Index(pids(found), pid)
	if i < 0 {
		t.Fatalf("process %d is not among %v", pid, found)
	}
	if got, want := found[i].String(), fmt.Sprintf("cat (process %d: cat /dev/stdin)", pid); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// tree is a stand-in for /proc.
type tree string

func (d tree) process(t *testing.T, pid int, files ...string) {
	t.Helper()
	fd := filepath.Join(string(d), strconv.Itoa(pid), "fd")
	if err := os.MkdirAll(fd, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		if err := os.Symlink(file, filepath.Join(fd, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProcessThatVanishes(t *testing.T) {
	d := tree(t.TempDir())
	d.process(t, 7, "/nowhere", full) // a file that goes while it is looked at
	d.process(t, 8)
	if err := os.Remove(filepath.Join(string(d), "8", "fd")); err != nil {
		t.Fatal(err)
	}
	found, err := NewFinder(string(d), "").find(fullNumber)
	if err != nil || len(found) != 1 || found[0].String() != "process 7" {
		t.Errorf("%v, %v", found, err)
	}
}

func TestOwnProcessIsThatOfTheMount(t *testing.T) {
	d := tree(t.TempDir())
	d.process(t, 4711, full)
	d.process(t, 4712, full)
	if err := os.Symlink("4711", filepath.Join(string(d), "self")); err != nil {
		t.Fatal(err)
	}
	if found, err := NewFinder(string(d), "").find(fullNumber); err != nil || !slices.Equal(pids(found), []int{4712}) {
		t.Errorf("%v, %v", found, err)
	}
}

func TestProcessesOfAContainerAreNotTheHosts(t *testing.T) {
	d := tree(t.TempDir())
	d.process(t, 1)
	if err := os.Symlink("1", filepath.Join(string(d), "self")); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFinder(string(d), "").find(fullNumber); !errors.Is(err, failure.Unsupported) || !strings.Contains(err.Error(), "nameHolders") {
		t.Error(err)
	}
	if _, err := NewFinder(filepath.Join(string(d), "missing"), "").find(fullNumber); err == nil {
		t.Error("nothing is found where there are no processes")
	}
}

func TestPermissions(t *testing.T) {
	const unprivileged = 65534
	d := tree(t.TempDir())
	for dir := string(d); dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.process(t, 7)
	d.process(t, 8, full)
	d.process(t, 9, "/dev/null")
	f := NewFinder(string(d), "")
	as := func(mode os.FileMode) (found []Holder, err error) {
		if chmod := os.Chmod(filepath.Join(string(d), "8"), mode); chmod != nil {
			t.Fatal(chmod)
		}
		asUser(t, unprivileged, func() { found, err = f.find(fullNumber) })
		return found, err
	}
	if err := os.Chmod(filepath.Join(string(d), "7", "fd"), 0); err != nil {
		t.Fatal(err)
	}
	if found, err := as(0o755); err != nil || !slices.Equal(pids(found), []int{8}) {
		t.Errorf("one that is found is enough: %v, %v", found, err)
	}
	if _, err := as(0); !errors.Is(err, failure.Unsupported) || !strings.Contains(err.Error(), "CAP_SYS_PTRACE") || !strings.Contains(err.Error(), "2 of 3") {
		t.Error(err)
	}
}

// asUser calls f in a thread of that user.
func asUser(t *testing.T, uid int, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	done := make(chan struct{})
	go func() {
		// The thread is not unlocked, so that it ends with the goroutine.
		runtime.LockOSThread()
		_, _, errno := unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uid), 0, 0)
		if errno == 0 {
			f()
		}
		close(done)
	}()
	<-done
}

func TestCommandIsCut(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", ""},
		{"python3\x00/app/train.py\x00--token=abc\x00x\x00", "python3 /app/train.py"},
		{"sleep\x00100\x00", "sleep 100"},
		{"-bash\x00", ""},
	} {
		if got := started(c.line); got != c.want {
			t.Errorf("%q: %q", c.line, got)
		}
	}
	if got := printable("a\nb\x1b[31m"); got != "a?b?[31m" {
		t.Errorf("%q", got)
	}
	if got := printable(strings.Repeat("é", 100)); len(got) > maxText || !strings.HasSuffix(got, "é…") {
		t.Errorf("%q", got)
	}
}

// BenchmarkFind looks through all processes of this machine.
func BenchmarkFind(b *testing.B) {
	f := NewFinder("/proc", "")
	for b.Loop() {
		if found, err := f.find(map[uint64]bool{unix.Mkdev(majorGPU, 0): true}); !nobody(found, err) {
			b.Fatal(found, err)
		}
	}
	processes, _ := f.others()
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	b.ReportMetric(float64(len(processes)), "processes")
	b.ReportMetric(float64(len(files)), "files")
}
