// Package kerneltest is a kernel that exists only in memory, for tests: namespaces,
// links that move between them, and what is lost on the way, as the real one does it.
// The tests of package kernel hold both to one description.
package kerneltest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// HostPath is the host's namespace.
const HostPath = "host"

// Kernel implements kernel.Kernel.
type Kernel struct {
	mutex     sync.Mutex
	spaces    map[string]*space // by path
	last      int               // index or inode that was given away
	exclusive bool
	watchers  map[int]func(kernel.Event)
	failures  map[string]error
	hung      map[hanging]*hang
	open      int
}

var _ kernel.Kernel = (*Kernel)(nil)

// New makes one with the host's namespace alone, in shared mode.
func New() *Kernel {
	k := &Kernel{spaces: map[string]*space{}, watchers: map[int]func(kernel.Event){}, failures: map[string]error{}, hung: map[hanging]*hang{}}
	k.AddNamespace(HostPath)
	return k
}

// space is a network namespace.
type space struct {
	id    kernel.ID
	links map[int]*link
	rdma  map[int]string // by index

	failures map[string]error
}

// link is an interface with what belongs to it.
type link struct {
	kernel.Link
	addresses []string
	routes    []kernel.Route
	sysctls   map[string]int // that have been set
	dcb       *machine.DCB   // nil: its port says nothing
}

// AddNamespace makes one that is opened by a path.
func (k *Kernel) AddNamespace(path string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.last++
	k.spaces[path] = &space{id: kernel.ID{Device: 4, Inode: uint64(k.last)}, links: map[int]*link{}, rdma: map[int]string{}, failures: map[string]error{}}
}

// AddLink makes an interface in a namespace and returns its index.
func (k *Kernel) AddLink(path string, l kernel.Link) int {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.last++
	l.Index = k.last
	k.spaces[path].links[l.Index] = &link{Link: l}
	k.raise(kernel.Event{Link: l.Name, Index: l.Index, Kind: l.Kind})
	return l.Index
}

// RemoveLink unmakes one.
func (k *Kernel) RemoveLink(path, name string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	maps.DeleteFunc(k.spaces[path].links, func(_ int, l *link) bool { return l.Name == name })
	k.raise(kernel.Event{Link: name})
}

// SetCarrier plugs a link's cable in, or pulls it out.
func (k *Kernel) SetCarrier(path, name string, there bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	l := k.spaces[path].byName(name)
	l.Carrier = there
	k.raise(kernel.Event{Link: name, Index: l.Index, Kind: l.Kind})
}

// AddRDMA makes an RDMA device in a namespace.
func (k *Kernel) AddRDMA(path, name string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.last++
	k.spaces[path].rdma[k.last] = name
}

// HasDCB gives an interface's port DCB settings.
func (k *Kernel) HasDCB(path, name string, is machine.DCB) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.spaces[path].byName(name).dcb = &is
}

// SetExclusive sets the mode of the RDMA subsystem.
func (k *Kernel) SetExclusive(exclusive bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.exclusive = exclusive
}

// Fail has all calls of that name ("MoveRDMA") fail; nil: no longer.
func (k *Kernel) Fail(call string, err error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.failures[call] = err
}

// FailIn has those calls fail in one namespace alone.
func (k *Kernel) FailIn(path, call string, err error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.spaces[path].failures[call] = err
}

// SetLeft gives a link promiscuous mode, all multicast and XDP as another has them.
func (k *Kernel) SetLeft(path, name string, as kernel.Link) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	l := k.spaces[path].byName(name)
	l.Promiscuous, l.AllMulticast, l.XDP = as.Promiscuous, as.AllMulticast, as.XDP
}

// Hang has those calls about one link wait until they are released. reached is closed when
// the first of them waits.
func (k *Kernel) Hang(call string, index int) (reached <-chan struct{}, release func()) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	h := &hang{reached: make(chan struct{}), until: make(chan struct{})}
	k.hung[hanging{call, index}] = h
	return h.reached, func() { close(h.until) }
}

// hang is what calls wait in.
type hang struct {
	once           sync.Once // closes reached
	reached, until chan struct{}
}

// hanging is a call about a link.
type hanging struct {
	call string
	link int
}

// End ends a namespace: what was in it comes to the host, under its name or, where that is
// taken, another.
func (k *Kernel) End(path string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	ending, host := k.spaces[path], k.spaces[HostPath]
	delete(k.spaces, path)
	for _, l := range ending.links {
		if host.byName(l.Name) != nil {
			l.Name = host.free("dev%d")
		}
		host.take(l)
		k.raise(kernel.Event{Link: l.Name, Index: l.Index, Kind: l.Kind})
	}
	maps.Copy(host.rdma, ending.rdma)
}

// Unclosed counts namespaces that have not been closed.
func (k *Kernel) Unclosed() int {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.open
}

// Host implements kernel.Kernel.
func (k *Kernel) Host() (kernel.Namespace, error) { return k.Open(HostPath) }

// Open implements kernel.Kernel.
func (k *Kernel) Open(path string) (kernel.Namespace, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	s, ok := k.spaces[path]
	if !ok {
		return nil, unix.ENOENT
	}
	if err := k.failures["Open "+path]; err != nil {
		return nil, err
	}
	k.open++
	return &namespace{Kernel: k, space: s}, nil
}

// Others implements kernel.Kernel.
func (k *Kernel) Others() []string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	paths := slices.Sorted(maps.Keys(k.spaces))
	return slices.DeleteFunc(paths, func(p string) bool { return p == HostPath })
}

// Watch implements kernel.Kernel.
func (k *Kernel) Watch(ctx context.Context, notify func(kernel.Event)) error {
	k.mutex.Lock()
	k.last++
	me := k.last
	k.watchers[me] = notify
	k.mutex.Unlock()
	<-ctx.Done()
	k.mutex.Lock()
	defer k.mutex.Unlock()
	delete(k.watchers, me)
	return nil
}

// raise tells those that watch. They must not call back.
func (k *Kernel) raise(e kernel.Event) {
	for _, notify := range k.watchers {
		notify(e)
	}
}

func (s *space) byName(name string) *link {
	for _, l := range s.links {
		if l.Name == name {
			return l
		}
	}
	return nil
}

// free is a name of a pattern that nobody has.
func (s *space) free(pattern string) string {
	for n := 0; ; n++ {
		if name := strings.Replace(pattern, "%d", string(rune('0'+n)), 1); s.byName(name) == nil {
			return name
		}
	}
}

// take gives the namespace a link as links arrive in one.
func (s *space) take(l *link) {
	l.Up, l.Carrier, l.Master, l.addresses, l.routes, l.sysctls = false, false, 0, nil, nil, nil
	if l.dcb != nil {
		l.dcb.DSCP = nil
		if l.dcb.Trust == machine.TrustDSCP {
			l.dcb.Trust = machine.TrustPCP
		}
	}
	s.links[l.Index] = l
}
