package server

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"
)

// rootOnly lets in those whose user, as the kernel knows it, is root: whoever can
// start a control daemon decides about the GPUs of others. The socket's mode says the
// same, but a mode can be changed.
type rootOnly struct{}

// peer is who was let in.
type peer struct{ credentials.CommonAuthInfo }

func (peer) AuthType() string { return "SO_PEERCRED" }

func (rootOnly) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	uid, err := user(conn)
	if err != nil {
		return nil, nil, err
	}
	if uid != 0 {
		return nil, nil, fmt.Errorf("user %d is not served, only root is", uid)
	}
	return conn, peer{credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}, nil
}

// user asks the kernel who connected (unix(7), SO_PEERCRED).
func user(conn net.Conn) (uint32, error) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, errors.New("not a Unix socket")
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var who *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		who, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, failed
	}
	return who.Uid, nil
}

func (rootOnly) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("for servers only")
}

func (rootOnly) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "unix"}
}
func (r rootOnly) Clone() credentials.TransportCredentials { return r }
func (rootOnly) OverrideServerName(string) error           { return nil }
