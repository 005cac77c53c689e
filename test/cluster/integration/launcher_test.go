package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const envRun = "DOVETAIL_CLUSTER_TEST"

// launcher is the program under test, for clusters of one name.
type launcher struct{ file, name string }

// newLauncher builds the launcher, or skips the test and says why.
func newLauncher(t *testing.T) *launcher {
	t.Helper()
	var lacks []string
	if os.Getenv(envRun) == "" {
		lacks = append(lacks, envRun+"=1 in the environment (the test starts clusters, and builds them first: minutes, once)")
	}
	if os.Geteuid() != 0 {
		lacks = append(lacks, "root")
	}
	if len(lacks) > 0 {
		t.Skip("this test lacks: ", strings.Join(lacks, "; "))
	}
	l := &launcher{filepath.Join(t.TempDir(), "cluster"), fmt.Sprintf("test-%d", os.Getpid())}
	if out, err := exec.Command("go", "build", "-o", l.file, "..").CombinedOutput(); err != nil {
		t.Fatalf("building the launcher: %v\n%s", err, out)
	}
	t.Cleanup(func() { _ = l.cmd("down").Run() })
	return l
}

func (l *launcher) cmd(args ...string) *exec.Cmd {
	return exec.Command(l.file, append([]string{"--name", l.name}, args...)...)
}

// must runs a command of the launcher and returns what it printed.
func (l *launcher) must(t *testing.T, args ...string) string {
	t.Helper()
	out, code := l.run(t, args...)
	if code != 0 {
		t.Fatalf("%v: exit code %d\n%s", args, code, out)
	}
	return out
}

func (l *launcher) run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := l.cmd(args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if err != nil {
		return out.String() + errOut.String(), cmd.ProcessState.ExitCode()
	}
	return out.String(), 0
}

// pid finds a part of the cluster, as the host numbers it.
func (l *launcher) pid(t *testing.T, part string) int {
	t.Helper()
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		line, _ := os.ReadFile(p + "/cmdline")
		if bytes.Contains(line, []byte("\x00"+part+"\x00--name\x00"+l.name+"\x00")) {
			pid, err := strconv.Atoi(filepath.Base(p))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("no process %s", part)
	return 0
}

// nothingLeft checks that the machine shows no trace of the cluster.
func (l *launcher) nothingLeft(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup/dovetail-" + l.name, "/sys/fs/cgroup/*/dovetail-" + l.name, "/var/lib/dovetail-cluster/" + l.name} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			t.Errorf("left: %v", found)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), "dovetail-cluster/"+l.name) {
		t.Error("left: mounts")
	}
	links, err := os.ReadDir("/sys/class/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if regexp.MustCompile(`^(br0|cni0|node\d+)$`).MatchString(link.Name()) {
			t.Errorf("left: interface %s", link.Name())
		}
	}
	l.noProcess(t)
}

// noProcess looks for processes that are in the cluster's cgroup or name its state.
func (l *launcher) noProcess(t *testing.T) {
	t.Helper()
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		group, _ := os.ReadFile(p + "/cgroup")
		line, _ := os.ReadFile(p + "/cmdline")
		if len(line) == 0 {
			continue // a zombie that the machine's init has yet to reap, or a kernel thread
		}
		if bytes.Contains(group, []byte("dovetail-"+l.name)) || bytes.Contains(line, []byte("dovetail-cluster/"+l.name)) {
			t.Errorf("left: process %s: %s", filepath.Base(p), bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
		}
	}
}
