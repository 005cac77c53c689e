// Package standin puts network interfaces of a real kernel in the place of a simulated
// machine's: pairs of veths, in the network namespace in which it runs, with the names,
// hardware addresses, addresses and routes that the machine's state has. Each pair's
// other end is the wire: it is down where nothing is at the cable's other end.
//
// The kernel does not treat a veth as it does hardware. It destroys one with the network
// namespace that it is in, where a NIC would come back: the keeper makes it again, just
// as a NIC would come back. What becomes of an interface in the real kernel is mirrored in
// the machine's state, and so in its sysfs.
//
// Wires are in a namespace that nothing but the keeper's process holds. When that ends,
// however it does, the kernel takes the wires away, and with them all stand-ins.
package standin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// Keeper makes a machine's stand-ins and looks after them.
type Keeper struct {
	machine *simulator.Machine
	// note is told what cannot be done, and is for people.
	note func(string)
	home *netlink.Handle
	// wires is the namespace of the wires.
	wires     netns.NsHandle
	wireSide  *netlink.Handle
	wireSpace int // its number, as the home namespace knows it; -1: not yet
	boot      string
	links     map[key]*link
	made      int // pairs, for the wires' names
	noted     map[string]bool
}

// key is a function's i-th interface.
type key struct {
	function machine.Address
	i        int
}

// link is a pair.
type link struct {
	mac        string
	generation int // of the function
	wire       int // its index among the wires
	// place is where the stand-in is; empty: at home. index is its own there.
	place string
	index int
}

// is says whether that is the stand-in. One of before, of which there may still be news,
// had the hardware address, too, but another wire.
func (l *link) is(found netlink.Link) bool {
	attributes := found.Attrs()
	return found.Type() == "veth" && attributes.HardwareAddr.String() == l.mac && attributes.ParentIndex == l.wire
}

// Run makes the stand-ins, calls ready, and looks after them until ctx ends. note may be
// called at any time. failure.Busy where another process does so for this machine,
// failure.Conflict where an interface has a name that a stand-in wants.
func Run(ctx context.Context, m *simulator.Machine, note func(string), ready func()) error {
	unlock, err := lock(m)
	if err != nil {
		return err
	}
	defer unlock()
	k := &Keeper{machine: m, note: note, links: map[key]*link{}, wireSpace: -1, noted: map[string]bool{}}
	if k.home, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("opening the network namespace: %w", err)
	}
	defer k.home.Close()
	if err := k.makeWireSpace(); err != nil {
		return fmt.Errorf("making a network namespace for the wires (root is needed): %w", err)
	}
	defer k.wires.Close()
	defer k.wireSide.Close()
	defer k.removeAll()
	return k.watch(ctx, ready)
}

// lock lets only one process keep a machine's stand-ins.
func lock(m *simulator.Machine) (unlock func(), err error) {
	path := filepath.Join(m.Root(), simulator.StateDir, "standins.lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, failure.New(failure.Busy, "another process keeps the stand-ins of the machine at %s: end it first", m.Root())
	}
	return func() { f.Close() }, nil
}

// makeWireSpace makes a namespace that no path leads to.
func (k *Keeper) makeWireSpace() error {
	runtime.LockOSThread()
	here, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer here.Close()
	k.wires, err = netns.New()
	if err := errors.Join(err, netns.Set(here)); err != nil {
		return err // the thread is no longer fit for others: it ends with its goroutine
	}
	runtime.UnlockOSThread()
	k.wireSide, err = netlink.NewHandleAt(k.wires, unix.NETLINK_ROUTE)
	return err
}

// removeAll takes the stand-ins away at once, and not only when the kernel finds that
// their wires' namespace has gone.
func (k *Keeper) removeAll() {
	for at := range k.links {
		k.remove(at)
	}
}

func (k *Keeper) remove(at key) {
	wire, err := k.wireSide.LinkByIndex(k.links[at].wire)
	if err == nil {
		err = k.wireSide.LinkDel(wire)
	}
	if err := unlessMissing(err); err != nil {
		k.tell("the stand-in for interface %d of %s cannot be removed: %v", at.i, at.function, err)
	}
	delete(k.links, at)
}

// tell tells people once.
func (k *Keeper) tell(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !k.noted[text] {
		k.noted[text] = true
		k.note(text)
	}
}

// unlessMissing is err unless it says that a link is not there.
func unlessMissing(err error) error {
	if errors.As(err, &netlink.LinkNotFoundError{}) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
