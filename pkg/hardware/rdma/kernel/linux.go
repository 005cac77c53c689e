package kernel

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Linux is the kernel of this machine.
type Linux struct {
	// HostNamespace is the file of the namespace that NICs are at home in. Empty: this
	// process's.
	HostNamespace string
	// ProcRoot is where the host's /proc is mounted; it leads to the other namespaces, and
	// to the sysctls of links.
	ProcRoot string
}

var _ Kernel = (*Linux)(nil)

// The namespaces of the process's main thread, and of the calling one.
const (
	ofProcess = "/proc/self/ns/net"
	ofThread  = "/proc/thread-self/ns/net"
)

// Host implements Kernel.
func (l *Linux) Host() (Namespace, error) { return l.Open(l.host()) }

func (l *Linux) host() string {
	if l.HostNamespace == "" {
		return ofProcess
	}
	return l.HostNamespace
}

// Open implements Kernel.
func (l *Linux) Open(path string) (Namespace, error) {
	n, err := open(path)
	if err != nil {
		return nil, err // no interface that holds a nil pointer
	}
	n.proc = l.ProcRoot
	return n, nil
}

func open(path string) (*namespace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	id, err := identify(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	n := &namespace{file: file, id: id, sockets: map[int]*nl.SocketHandle{}}
	err = n.inside(func() (err error) {
		if n.route, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return err
		}
		return n.socket(unix.NETLINK_ROUTE)
	})
	if err != nil {
		_ = n.Close()
		return nil, fmt.Errorf("network namespace %s: %w", path, err)
	}
	return n, nil
}

func identify(file *os.File) (ID, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &fs); err != nil {
		return ID{}, err
	}
	if fs.Type != unix.NSFS_MAGIC {
		return ID{}, fmt.Errorf("%s is no namespace any more: %w", file.Name(), unix.ENOENT)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return ID{}, err
	}
	return ID{Device: stat.Dev, Inode: stat.Ino}, nil
}

// namespace is an open one. Its sockets work from any thread.
type namespace struct {
	file    *os.File
	id      ID
	route   *netlink.Handle
	sockets map[int]*nl.SocketHandle
	rdma    *netlink.Handle // nil: not asked for yet
	proc    string          // Linux.ProcRoot
}

func (n *namespace) ID() ID { return n.id }

func (n *namespace) Close() error {
	for _, handle := range []*netlink.Handle{n.route, n.rdma} {
		if handle != nil {
			handle.Close()
		}
	}
	for _, socket := range n.sockets {
		socket.Close()
	}
	return n.file.Close()
}

func (n *namespace) fd() int { return int(n.file.Fd()) }

// socket opens one, for requests of this package's own. It must be called inside.
func (n *namespace) socket(protocol int) error {
	socket, err := nl.GetNetlinkSocketAt(-1, -1, protocol)
	if err == nil {
		n.sockets[protocol] = &nl.SocketHandle{Socket: socket}
	}
	return err
}

// inside calls f on a thread that is in the namespace. Entering another one than the
// process's needs CAP_SYS_ADMIN.
func (n *namespace) inside(f func() error) error {
	var here unix.Stat_t
	if err := unix.Stat(ofThread, &here); err == nil && (ID{here.Dev, here.Ino}) == n.id {
		return f()
	}
	result := make(chan error, 1)
	go func() { result <- onThread(n.fd(), f) }()
	return <-result
}

// onThread puts the goroutine's thread into a namespace, and back. A thread that cannot
// be put back is not used again: it ends with the goroutine. The main thread is left
// alone: its namespace is what others take for the process's.
func onThread(fd int, f func() error) error {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		defer runtime.UnlockOSThread()
		result := make(chan error, 1)
		go func() { result <- onThread(fd, f) }() // on another thread: this one is taken
		return <-result
	}
	was, err := unix.Open(ofThread, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return &os.PathError{Op: "open", Path: ofThread, Err: err}
	}
	defer unix.Close(was)
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return os.NewSyscallError("setns", err)
	}
	result := f()
	if err := unix.Setns(was, unix.CLONE_NEWNET); err == nil {
		runtime.UnlockOSThread()
	}
	return result
}
