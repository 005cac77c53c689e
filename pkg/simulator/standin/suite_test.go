package standin_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/hardwaretest"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// TestAdapterTakesStandInsForNICs: the adapter for real hardware passes the suite on
// stand-ins and the rendered sysfs.
func TestAdapterTakesStandInsForNICs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make network namespaces and interfaces")
	}
	hardwaretest.TestNICs(t, func(t *testing.T) hardwaretest.NICFixture {
		n := start(t, "nic-only")
		n.settle(t)
		nics := rdma.New(rdma.Options{
			SysfsRoot:     filepath.Join(n.Root(), "sys"),
			HostNamespace: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.fd),
		})
		spec := n.Spec().NICs[0]
		pods, mutex := map[string]*exec.Cmd{}, sync.Mutex{}
		pod := func(namespace string) string {
			mutex.Lock()
			defer mutex.Unlock()
			if pods[namespace] == nil {
				pods[namespace] = newPod(t)
			}
			return fmt.Sprintf("/proc/%d/ns/net", pods[namespace].Process.Pid)
		}
		return hardwaretest.NICFixture{
			NICs: settled{nics, func() { n.settle(t) }}, NIC: spec.Address,
			Move: func(namespace string, order hardware.NICMove) error {
				return nics.Move(t.Context(), pod(namespace), order)
			},
			End: func(namespace string) error {
				end(pods[namespace])
				delete(pods, namespace)
				return nil
			},
			TakeName: func(name string) error {
				other := netlink.NewLinkAttrs()
				other.Name = name
				return n.LinkAdd(&netlink.Veth{LinkAttrs: other, PeerName: "x" + name})
			},
			GiveName: func(name string) error { return n.LinkDel(n.link(t, name)) },
			SetLink:  func(there bool) error { return n.SetLink(spec.RDMA, there) },
			Unplug:   func() error { return n.Unplug(spec.RDMA) },
			Plug: func() error {
				err := n.Plug(spec.RDMA)
				n.until(t, "its interface", func(*simulator.State) bool { return n.link(t, spec.Netdevs[0].Name) != nil })
				return err
			},
			Lacks: map[string]string{
				"Home":             "a veth has no DCB",
				"DCB":              "a veth has no DCB",
				"DCBComesBack":     "a veth has no DCB",
				"RDMAExclusive":    "the kernel has no RDMA device behind the rendered one",
				"VirtualFunctions": "files in a tree make no virtual functions: test/vm does",
				"MoveRefused":      "a veth takes any MTU",
			},
		}
	})
}

// settled is an adapter for tests that look at once: the rendered sysfs follows the kernel
// a moment later.
type settled struct {
	*rdma.NICs
	settle func()
}

func (s settled) BringHome(ctx context.Context, home machine.NICHome) error {
	defer s.settle()
	return s.NICs.BringHome(ctx, home)
}

// newPod is a process in a network namespace of its own.
func newPod(t *testing.T) *exec.Cmd {
	t.Helper()
	pod := exec.Command("sleep", "infinity")
	pod.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	must(t, pod.Start())
	t.Cleanup(func() { end(pod) })
	return pod
}

func end(pod *exec.Cmd) {
	_ = pod.Process.Kill() // it may have ended
	_ = pod.Wait()         // it was killed
}
