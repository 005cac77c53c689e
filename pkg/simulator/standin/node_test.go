package standin_test

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
	"github.com/dovetail-dra/dovetail/pkg/simulator/standin"
)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// space is a throwaway network namespace.
type space struct {
	fd netns.NsHandle
	*netlink.Handle
}

// newSpace makes one; end lets it end, as that of a Pod.
func newSpace(t *testing.T) (s *space, end func()) {
	t.Helper()
	s = &space{}
	inside(t, 0, func() error {
		var err error
		s.fd, err = netns.New()
		return err
	})
	var err error
	if s.Handle, err = netlink.NewHandleAt(s.fd, unix.NETLINK_ROUTE); err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			s.Close()
			s.fd.Close()
		}
	}
	t.Cleanup(end)
	return s, end
}

// inside calls f in a namespace, on a thread that then ends. 0: where the test is.
func inside(t *testing.T, fd netns.NsHandle, f func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good
		if fd != 0 {
			if err := netns.Set(fd); err != nil {
				done <- err
				return
			}
		}
		done <- f()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// node is a simulated machine with its stand-ins in a namespace.
type node struct {
	*simulatortest.Machine
	*space
	stop     func() error
	settling sync.Mutex
}

func start(t *testing.T, machine string) *node {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make network namespaces and interfaces")
	}
	n := &node{Machine: simulatortest.New(t, machine)}
	n.space, _ = newSpace(t)
	n.run(t)
	return n
}

// run starts a keeper and waits until it is ready.
func (n *node) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan bool, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good
		if err := netns.Set(n.fd); err != nil {
			ended <- err
			return
		}
		ended <- standin.Run(ctx, n.Machine.Machine, func(note string) { t.Log("note:", note) }, func() { ready <- true })
	}()
	n.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { n.stop() })
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("it ended: %v", err)
	case <-time.After(patience):
		t.Fatal("it is not ready")
	}
}

// link is an interface in a space, or nil.
func (s *space) link(t *testing.T, name string) netlink.Link {
	t.Helper()
	l, err := s.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// until waits for something to become true of the machine's state, or of the kernel, whose
// changes the state follows.
func (n *node) until(t *testing.T, what string, is func(*simulator.State) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	events, err := n.Events()
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	for {
		state, err := n.State()
		if err != nil {
			t.Fatal(err)
		}
		if is(state) {
			return
		}
		step, end := context.WithTimeout(ctx, 50*time.Millisecond) // the kernel's own changes raise no event
		if _, err := events.Next(step, func(simulator.Event) bool { return false }); err != nil && ctx.Err() != nil {
			t.Fatalf("%s does not come true: %+v", what, state.NICs)
		}
		end()
	}
}

// settle waits until the state has what the kernel has. The kernel's messages come in turn:
// once a change of another NIC's interface is seen, all that came before it has been.
func (n *node) settle(t *testing.T) {
	t.Helper()
	n.settling.Lock()
	defer n.settling.Unlock()
	other := n.link(t, n.Spec().NICs[1].Netdevs[0].Name)
	mtu := other.Attrs().MTU + 1 // which none had before
	must(t, n.LinkSetMTU(other, mtu))
	n.until(t, "another NIC's MTU", func(s *simulator.State) bool { return n.netdev(1)(s).MTU == mtu })
}

func (n *node) netdev(i int) func(*simulator.State) simulator.NetdevState {
	return func(s *simulator.State) simulator.NetdevState { return s.NICs[i].Netdevs[0] }
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func network(t *testing.T, text string) *net.IPNet {
	t.Helper()
	_, n, err := net.ParseCIDR(text)
	must(t, err)
	return n
}
