package kerneltest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
)

// Real is this machine's kernel with network namespaces made for one test. They end with
// it.
type Real struct {
	*kernel.Linux
	t testing.TB
}

// NewReal makes the one that serves as the host's. Without the right to it the test is
// skipped, which says so.
func NewReal(t testing.TB) *Real {
	t.Helper()
	r := &Real{t: t, Linux: &kernel.Linux{ProcRoot: t.TempDir()}}
	r.must(os.Symlink("/proc/sys", filepath.Join(r.ProcRoot, "sys")))
	r.HostNamespace = r.Namespace("host")
	return r
}

// Namespace makes another one, which Others lists from then on, and returns its path.
func (r *Real) Namespace(name string) string {
	r.t.Helper()
	file, err := newNamespace()
	if errors.Is(err, unix.EPERM) {
		r.t.Skip("not run: network namespaces can only be made with CAP_SYS_ADMIN")
	}
	r.must(err)
	r.t.Cleanup(func() { file.Close() })
	path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file.Fd())
	listed := filepath.Join(r.ProcRoot, "1", "root", "run", "netns", name)
	r.must(os.MkdirAll(filepath.Dir(listed), 0o755))
	r.must(os.Symlink(path, listed))
	return listed
}

// newNamespace makes one.
func newNamespace() (file *os.File, err error) {
	err = onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		file, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return file, err
}

// Inside calls f on a thread that is in a namespace; processes that it starts are too.
func (r *Real) Inside(path string, f func() error) error {
	return onThread(func() error {
		to, err := netns.GetFromPath(path)
		if err != nil {
			return err
		}
		defer to.Close()
		if err := netns.Set(to); err != nil {
			return err
		}
		return f()
	})
}

// onThread calls what puts its thread into a namespace. The thread goes back to where it
// was, since it may be the process's main one.
func onThread(f func() error) error {
	runtime.LockOSThread()
	was, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer was.Close()
	err = f()
	if back := netns.Set(was); back != nil {
		return back // with the thread locked, which ends with the goroutine
	}
	runtime.UnlockOSThread()
	return err
}

// AddVeth makes an interface in a namespace, whose other end is beside it and up, so that
// it has a carrier.
func (r *Real) AddVeth(path, name, mac string) {
	r.t.Helper()
	r.do(path, func(h *netlink.Handle) error {
		address, err := net.ParseMAC(mac)
		if err != nil {
			return err
		}
		end := "w" + hex.EncodeToString(address) // one of its own, whatever has been renamed
		attributes := netlink.LinkAttrs{Name: name, HardwareAddr: address}
		if err := h.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: end}); err != nil {
			return err
		}
		other, err := h.LinkByName(end)
		if err != nil {
			return err
		}
		return h.LinkSetUp(other)
	})
}

// AddVLAN makes an interface on top of another.
func (r *Real) AddVLAN(path, on, name string) error {
	return r.try(path, func(h *netlink.Handle) error {
		lower, err := h.LinkByName(on)
		if err != nil {
			return err
		}
		return h.LinkAdd(&netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: name, ParentIndex: lower.Attrs().Index}, VlanId: 100})
	})
}

// Delete removes an interface.
func (r *Real) Delete(path, name string) {
	r.t.Helper()
	r.do(path, func(h *netlink.Handle) error {
		link, err := h.LinkByName(name)
		if err != nil {
			return err
		}
		return h.LinkDel(link)
	})
}

func (r *Real) do(path string, f func(*netlink.Handle) error) {
	r.t.Helper()
	r.must(r.try(path, f))
}

func (r *Real) try(path string, f func(*netlink.Handle) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	h, err := netlink.NewHandleAt(netns.NsHandle(file.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	return f(h)
}

func (r *Real) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// AddMultipath makes an IPv4 route through several interfaces, each with its next hop.
func (r *Real) AddMultipath(path, to string, hops map[string]string) {
	r.t.Helper()
	r.do(path, func(h *netlink.Handle) error {
		_, prefix, err := net.ParseCIDR(to)
		if err != nil {
			return err
		}
		route := &netlink.Route{Dst: prefix}
		for name, via := range hops {
			link, err := h.LinkByName(name)
			if err != nil {
				return err
			}
			if err := h.LinkSetUp(link); err != nil {
				return err
			}
			route.MultiPath = append(route.MultiPath, &netlink.NexthopInfo{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(via)})
		}
		return h.RouteAdd(route)
	})
}

// AddRule has packets from a prefix, or all, routed by a table.
func (r *Real) AddRule(path, from string, table int) {
	r.t.Helper()
	r.do(path, func(h *netlink.Handle) error {
		rule := netlink.NewRule()
		rule.Family, rule.Table = netlink.FAMILY_V4, table
		if from != "" {
			_, prefix, err := net.ParseCIDR(from)
			if err != nil {
				return err
			}
			rule.Src = prefix
		}
		return h.RuleAdd(rule)
	})
}
