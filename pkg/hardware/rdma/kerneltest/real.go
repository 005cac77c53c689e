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
	"unsafe"

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

// Soil leaves on an interface what a container with privileges can: promiscuous mode, all
// multicast packets, a queueing discipline with filters (clsact), and an XDP program. The
// error says what the kernel lacks.
func (r *Real) Soil(path, name string) error {
	program, err := passAll()
	if err != nil {
		return fmt.Errorf("load an XDP program: %w", err)
	}
	defer func() { _ = unix.Close(program) }()
	return r.Inside(path, func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		clsact := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: link.Attrs().Index, Parent: netlink.HANDLE_CLSACT, Handle: netlink.MakeHandle(0xffff, 0),
		}}
		if err := netlink.QdiscAdd(clsact); err != nil {
			return fmt.Errorf("add clsact: %w", err)
		}
		if err := netlink.LinkSetXdpFdWithFlags(link, program, unix.XDP_FLAGS_SKB_MODE); err != nil {
			return fmt.Errorf("attach an XDP program: %w", err)
		}
		return errors.Join(netlink.SetPromiscOn(link), netlink.LinkSetAllmulticastOn(link))
	})
}

// Qdiscs are the kinds of queueing discipline that an interface has.
func (r *Real) Qdiscs(path, name string) (kinds []string) {
	r.t.Helper()
	r.do(path, func(h *netlink.Handle) error {
		link, err := h.LinkByName(name)
		if err != nil {
			return err
		}
		all, err := h.QdiscList(link)
		for _, q := range all {
			kinds = append(kinds, q.Type())
		}
		return err
	})
	return kinds
}

// passAll loads the XDP program that lets all packets pass: r0 = XDP_PASS; exit.
func passAll() (fd int, err error) {
	const program, xdp = 5, 6 // bpf(2): BPF_PROG_LOAD, BPF_PROG_TYPE_XDP
	instructions := []uint64{2<<32 | 0xb7, 0x95}
	license := []byte("GPL\x00")
	attributes := struct {
		kind, count           uint32
		instructions, license uint64
		_                     [13]uint64
	}{kind: xdp, count: uint32(len(instructions)), instructions: uint64(uintptr(unsafe.Pointer(&instructions[0]))), license: uint64(uintptr(unsafe.Pointer(&license[0])))}
	n, _, errno := unix.Syscall(unix.SYS_BPF, program, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes))
	runtime.KeepAlive(instructions)
	runtime.KeepAlive(license)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
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
