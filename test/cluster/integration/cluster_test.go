package integration

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  nodeName: %[2]s
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "registry.local/busybox:1", imagePullPolicy: Never, command: [sh, -c, "hostname; exec sleep 3600"], resources: {limits: {memory: 32Mi, cpu: 100m}}}
`

// startPod starts a Pod and waits until it runs.
func (l *launcher) startPod(t *testing.T, name, node string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, pod, name, node), 0o644); err != nil {
		t.Fatal(err)
	}
	l.must(t, "kubectl", "apply", "-f", file)
	l.must(t, "kubectl", "wait", "--for=condition=Ready", "pod/"+name, "--timeout=60s")
}

// firstLog returns the first line of a Pod's log, when it comes.
func (l *launcher) firstLog(t *testing.T, name string) string {
	t.Helper()
	cmd := l.cmd("kubectl", "logs", "--follow", "pod/"+name)
	log, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(log).ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return line
}

func TestCluster(t *testing.T) {
	l := newLauncher(t)
	l.must(t, "up", "2")
	l.startPod(t, "a", "node-1")
	if got := l.firstLog(t, "a"); got != "a\n" {
		t.Errorf("the Pod's log is %q", got)
	}
	if got := l.must(t, "kubectl", "exec", "a", "--", "hostname"); got != "a\n" {
		t.Errorf("exec in the Pod said %q", got)
	}
	t.Run("exit codes", func(t *testing.T) {
		for _, x := range []struct {
			code int
			args string
		}{
			{7, "exec node-1 sh -c exit${IFS}7"}, {127, "exec node-1 no-such-program"}, {1, "exec node-9 true"},
			{3, "run sh -c exit${IFS}3"}, {127, "run no-such-program"}, {1, "kubectl no-such-command"}, {0, "up 2"}, {0, "status"},
		} {
			if out, code := l.run(t, strings.Fields(x.args)...); code != x.code {
				t.Errorf("%s: exit code %d, want %d\n%s", x.args, code, x.code, out)
			}
		}
	})
	t.Run("run", func(t *testing.T) {
		got := l.must(t, "run", "sh", "-c", `"$DOVETAIL_CLUSTER" kubectl get nodes -o name && "$DOVETAIL_CLUSTER" exec node-2 hostname`)
		if got != "node/node-1\nnode/node-2\nnode-2\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("killed exec", func(t *testing.T) {
		cmd := l.cmd("exec", "node-1", "sh", "-c", "echo; exec sleep 4321")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil { // it runs
			t.Fatal(err)
		}
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, out) // until the command, too, has let go of it
		_ = cmd.Wait()
		if got, code := l.run(t, "exec", "node-1", "pgrep", "-f", "^sleep 4321"); code != 1 {
			t.Errorf("the command outlived the launcher: %s", got)
		}
	})
	t.Run("restart", func(t *testing.T) {
		l.must(t, "restart-kubelet", "node-1", "--wait")
		l.must(t, "stop-kubelet", "node-2")
		l.must(t, "start-kubelet", "node-2", "--wait")
	})
	t.Run("reboot", func(t *testing.T) { reboot(t, l) })
	t.Run("API server", func(t *testing.T) {
		l.must(t, "pause-apiserver")
		if _, code := l.run(t, "kubectl", "get", "nodes"); code == 0 {
			t.Error("the API server answers")
		}
		l.must(t, "resume-apiserver")
		l.must(t, "kubectl", "get", "nodes")
	})
	t.Run("load", func(t *testing.T) {
		tars, err := filepath.Glob(filepath.Join(strings.TrimSpace(l.must(t, "build")), "images", "busybox.tar"))
		if err != nil || len(tars) != 1 {
			t.Fatal(tars, err)
		}
		l.must(t, "load", tars[0])
		if out, code := l.run(t, "load", "/etc/passwd"); code == 0 || !strings.Contains(out, "/etc/passwd") {
			t.Errorf("loading what is no image: exit code %d\n%s", code, out)
		}
	})
	begin := time.Now()
	l.must(t, "down")
	t.Logf("down took %s", time.Since(begin))
	l.nothingLeft(t)
	l.must(t, "down")
}

// reboot: what is in /run goes, what is on disk stays, and the node is another boot.
func reboot(t *testing.T, l *launcher) {
	bootID := func() string {
		return l.must(t, "exec", "node-1", "cat", "/proc/sys/kernel/random/boot_id")
	}
	before := bootID()
	l.must(t, "exec", "node-1", "touch", "/run/cdi/a", "/etc/cdi/b", "/var/lib/dovetail-sim/c")
	sleeper := l.cmd("exec", "node-1", "sleep", "3600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	got, code := l.run(t, "reboot", "node-1", "--wait", "--", "sh", "-c",
		"ls /run/cdi /run/netns /run/containerd /etc/cdi /var/lib/dovetail-sim; grep -c kubelet/pods /proc/self/mountinfo")
	if want := "/etc/cdi:\nb\n\n/run/cdi:\n\n/run/containerd:\n\n/run/netns:\n\n/var/lib/dovetail-sim:\nc\n0\n"; !strings.HasPrefix(got, want) {
		t.Errorf("while the node was down: %q, want %q (exit code %d)", got, want, code)
	}
	if err := sleeper.Wait(); err == nil {
		t.Error("a process lived through the reboot")
	}
	after := bootID()
	if after == before {
		t.Error("the boot id is the same")
	}
	if got := l.must(t, "kubectl", "get", "node", "node-1", "-o", "jsonpath={.status.nodeInfo.bootID}"); got+"\n" != after {
		t.Errorf("the API server knows of boot %q, the node of %q", got, after)
	}
	l.startPod(t, "b", "node-1")
}

// TestDownAfterKill kills one part of a cluster after the other.
func TestDownAfterKill(t *testing.T) {
	l := newLauncher(t)
	for _, part := range []string{"__init", "__supervise", "__node"} {
		t.Run(part, func(t *testing.T) {
			l.must(t, "up")
			l.startPod(t, "a", "node-1")
			if err := syscall.Kill(l.pid(t, part), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			l.must(t, "down")
			l.nothingLeft(t)
		})
	}
}

// TestUpCutShort interrupts `up` when its first line of progress has come.
func TestUpCutShort(t *testing.T) {
	for _, x := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 130}, {syscall.SIGKILL, -1}} {
		t.Run(x.signal.String(), func(t *testing.T) {
			l := newLauncher(t)
			l.must(t, "build")
			up := l.cmd("up")
			progress, err := up.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := up.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(progress)
			for lines.Scan() && !strings.Contains(lines.Text(), "API server ready") {
			}
			if err := up.Process.Signal(x.signal); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() {
			}
			_ = up.Wait()
			if got := up.ProcessState.ExitCode(); got != x.code {
				t.Errorf("exit code %d, want %d", got, x.code)
			}
			if x.signal == syscall.SIGKILL {
				l.must(t, "down")
			}
			l.nothingLeft(t)
		})
	}
}

func TestTwoClusters(t *testing.T) {
	a, b := newLauncher(t), newLauncher(t)
	a.name, b.name = "a-"+a.name, "b-"+b.name
	a.must(t, "up")
	b.must(t, "up", "2")
	a.must(t, "down")
	a.nothingLeft(t)
	b.startPod(t, "p", "node-2")
	b.must(t, "status")
	b.must(t, "down")
	b.nothingLeft(t)
}
