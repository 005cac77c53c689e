package guest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// pod is a network namespace, kept by a process as a Pod's is. The process has the
// namespace's own sysfs at /sys.
type pod struct {
	pid   int
	stdin io.Closer
	cmd   *exec.Cmd
}

// podMark makes this program such a process.
const podMark = "DOVETAIL_VM_POD"

func newPod(t *testing.T) *pod {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), podMark+"=1")
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	p := &pod{pid: cmd.Process.Pid, stdin: stdin, cmd: cmd}
	t.Cleanup(p.end)
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the Pod's process has not begun: %v", err)
	}
	return p
}

// bePod is the process: it stays until its standard input ends.
func bePod() {
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err == nil {
		err = unix.Mount("sysfs", "/sys", "sysfs", 0, "")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pod:", err)
		os.Exit(1)
	}
	_, _ = os.Stdout.Write([]byte("."))
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// end ends the process, and with it the namespace, in the kernel's own time.
func (p *pod) end() {
	_ = p.stdin.Close()
	_ = p.cmd.Wait()
}

// namespace is a path of the network namespace; root leads to the process's files.
func (p *pod) namespace() string { return filepath.Join("/proc", strconv.Itoa(p.pid), "ns/net") }
func (p *pod) root() string      { return filepath.Join("/proc", strconv.Itoa(p.pid), "root") }

// netlink calls f with a handle inside. A handle keeps the namespace from dying.
func (p *pod) netlink(t *testing.T, f func(*netlink.Handle)) {
	t.Helper()
	ns, err := netns.GetFromPath(p.namespace())
	must(t, err)
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE, unix.NETLINK_RDMA)
	must(t, err)
	defer h.Close()
	f(h)
}

// inside calls f on a thread in the namespace.
func (p *pod) inside(t *testing.T, f func() error) error {
	t.Helper()
	ns, err := netns.GetFromPath(p.namespace())
	must(t, err)
	defer ns.Close()
	return onThread(ns, f)
}

// onThread uses a thread that ends with it. The main one would not, and its namespace
// is what others take for the process's.
func onThread(ns netns.NsHandle, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			done <- onThread(ns, f)
			return
		}
		if err := netns.Set(ns); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// takeNetdev and takeRDMA move what the host has into the Pod, by the kernel's bare
// calls.
func (p *pod) takeNetdev(t *testing.T, name string) {
	t.Helper()
	must(t, netlink.LinkSetNsPid(link(t, name), p.pid))
}

func (p *pod) takeRDMA(t *testing.T, name string) {
	t.Helper()
	device, err := netlink.RdmaLinkByName(name)
	must(t, err)
	ns, err := netns.GetFromPath(p.namespace())
	must(t, err)
	defer ns.Close()
	must(t, netlink.RdmaLinkSetNsFd(device, uint32(ns)))
}

// take moves a NIC into the Pod as the mode wants it.
func (p *pod) take(t *testing.T, n topology.NIC, mode string) {
	t.Helper()
	p.takeNetdev(t, n.Name)
	if mode == "exclusive" {
		p.takeRDMA(t, n.RDMA)
	}
}

// rename gives an interface inside another name.
func (p *pod) rename(t *testing.T, from, to string) {
	t.Helper()
	p.netlink(t, func(h *netlink.Handle) {
		l, err := h.LinkByName(from)
		must(t, err)
		must(t, h.LinkSetName(l, to))
	})
}

// up gives an interface inside an address, and turns it on.
func (p *pod) up(t *testing.T, name, address string) {
	t.Helper()
	p.netlink(t, func(h *netlink.Handle) { turnOn(t, h, name, address) })
}

func turnOn(t *testing.T, h *netlink.Handle, name, address string) {
	t.Helper()
	l, err := h.LinkByName(name)
	must(t, err)
	if address != "" {
		a, err := netlink.ParseAddr(address)
		must(t, err)
		must(t, h.AddrReplace(l, a))
	}
	must(t, h.LinkSetUp(l))
}
