// Package control is how the launcher talks to a cluster that runs: a request and
// an answer, one JSON object each, over a socket in the state directory.
package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Request names an operation. The other fields are its arguments.
type Request struct {
	Op    string    `json:"op"`
	Node  string    `json:"node,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// Answer is what came of a request.
type Answer struct {
	Error  string   `json:"error,omitempty"`
	Daemon []Daemon `json:"daemons,omitempty"`
	Nodes  []Node   `json:"nodes,omitempty"`
}

// Daemon is the state of one program.
type Daemon struct{ Name, State string }

// Node is a node as the API server sees it.
type Node struct {
	Name   string
	Ready  bool
	BootID string
}

// Handler serves requests, several at a time.
type Handler func(Request) (Answer, error)

// Listen opens the socket. Serve answers on it until the process ends.
func Listen(path string) (net.Listener, error) {
	_ = os.Remove(path)
	return net.Listen("unix", path)
}

// Serve answers requests; a slow one does not hold the others up.
func Serve(l net.Listener, handle Handler) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go serveOne(conn, handle)
	}
}

func serveOne(conn net.Conn, handle Handler) {
	defer conn.Close()
	var req Request
	if err := json.NewDecoder(conn).Decode(&req); err != nil {
		return // a caller that only asked for our process number
	}
	ans, err := handle(req)
	if err != nil {
		ans.Error = err.Error()
	}
	_ = json.NewEncoder(conn).Encode(ans)
}

// Call sends one request and waits for its answer.
func Call(path string, req Request) (Answer, error) {
	conn, err := dial(path)
	if err != nil {
		return Answer{}, err
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(req); err != nil {
		return Answer{}, err
	}
	var ans Answer
	if err := json.NewDecoder(conn).Decode(&ans); err != nil {
		return ans, fmt.Errorf("no answer to %q: %w (is the cluster going down?)", req.Op, err)
	}
	if ans.Error != "" {
		return ans, errors.New(ans.Error)
	}
	return ans, nil
}

// PID returns the process that serves the socket, as numbered in the caller's own
// PID namespace: the kernel translates it.
func PID(path string) (int, error) {
	conn, err := dial(path)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	return int(cred.Pid), nil
}

func dial(path string) (*net.UnixConn, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("reaching the cluster: %w (does it run? see `status`)", err)
	}
	return conn, nil
}
