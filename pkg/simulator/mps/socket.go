package mps

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// socketName is what the control socket is called in a pipe directory.
const socketName = "control"

// addressLimit is how long a socket's path can be (unix(7)).
const addressLimit = 107

// working is held by whoever has changed the working directory.
var working sync.Mutex

// in calls f with a path of the control socket in dir that is short enough: by a
// descriptor of dir, or where a root directory has no proc, from within dir.
func in(dir string, f func(path string) error) error {
	if path := filepath.Join(dir, socketName); len(path) <= addressLimit {
		return f(path)
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if path := fmt.Sprintf("/proc/self/fd/%d", d.Fd()); exists(path) {
		return f(filepath.Join(path, socketName))
	}
	working.Lock()
	defer working.Unlock()
	before, err := os.Open(".")
	if err != nil {
		return err
	}
	defer before.Close()
	if err := d.Chdir(); err != nil {
		return err
	}
	return errors.Join(f(socketName), before.Chdir())
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// listen makes the socket that clients of every user may connect to.
func listen(dir string) (*net.UnixListener, error) {
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	var listener *net.UnixListener
	err := in(dir, func(path string) error {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return err
		}
		l.SetUnlinkOnClose(false)
		listener = l
		return os.Chmod(path, 0o666) // whatever the umask is
	})
	return listener, err
}

// makeDir makes a directory that everybody may look into. One that is there is left
// as it is.
func makeDir(dir string) error {
	if exists(dir) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

func dial(dir string) (*net.UnixConn, error) {
	var conn *net.UnixConn
	err := in(dir, func(path string) (err error) {
		conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	return conn, err
}

// peer is who is at the other end.
func peer(conn *net.UnixConn) (*unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return nil, err
	}
	return cred, failed
}

// pair is the control daemon's and a server's connection: each message is whole.
func pair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "server"), os.NewFile(uintptr(fds[1]), "control"), nil
}

// messageLimit bounds a message between control daemon and server.
const messageLimit = 1 << 17

// sendMessage writes a message with descriptors.
func sendMessage(to *os.File, data []byte, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	for {
		err := unix.Sendmsg(int(to.Fd()), data, rights, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("sendmsg", err)
		}
	}
}

// receiveMessage waits for a message; no data is the other's end.
func receiveMessage(from *os.File) (data []byte, conn *net.UnixConn, err error) {
	data, rights := make([]byte, messageLimit), make([]byte, unix.CmsgSpace(4))
	var n, r int
	for {
		n, r, _, _, err = unix.Recvmsg(int(from.Fd()), data, rights, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil || r == 0 {
		return data[:max(n, 0)], nil, os.NewSyscallError("recvmsg", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:r])
	if err != nil {
		return nil, nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, nil, err
		}
		for _, fd := range fds {
			f := os.NewFile(uintptr(fd), "client")
			c, err := net.FileConn(f)
			f.Close()
			if err != nil {
				return nil, nil, err
			}
			conn = c.(*net.UnixConn)
		}
	}
	return data[:n], conn, nil
}
