package mps

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// soon bounds a write to somebody who may not read.
func soon() time.Time { return time.Now().Add(5 * time.Second) }

// Error is what a CUDA call answers.
type Error struct{ Code, Message string }

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// ErrNoDaemon says that there is no control daemon: the process goes on without MPS.
var ErrNoDaemon = errors.New("no MPS control daemon")

// Session is a client's connection to its server.
type Session struct {
	Attached
	conn    *net.UnixConn
	replies chan reply
	// Ended has the one error after which nothing can be done any more.
	Ended chan *Error
}

// Connect does what the CUDA driver does when a process begins: dir is its
// CUDA_MPS_PIPE_DIRECTORY, and the environment has its limits. An *Error, or
// ErrNoDaemon.
func Connect(dir, command, cgroup string) (*Session, error) {
	conn, err := dial(dir)
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrNoDaemon, dir, err)
	}
	a := attach{Command: command, Cgroup: cgroup,
		Percentage: os.Getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"),
		Memory:     strings.Trim(os.Getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), `'"`)}
	if err := send(conn, request{Attach: &a}); err != nil {
		conn.Close()
		return nil, &Error{ErrConnection, err.Error()}
	}
	s := &Session{conn: conn, replies: make(chan reply), Ended: make(chan *Error, 1)}
	go s.listen()
	r, ended := s.next()
	if ended != nil {
		return nil, ended
	}
	if r.Attached == nil {
		conn.Close()
		return nil, &Error{r.Error, r.Message}
	}
	s.Attached = *r.Attached
	return s, nil
}

func (s *Session) listen() {
	defer close(s.replies)
	decoder := json.NewDecoder(s.conn)
	for {
		var r reply
		if err := decoder.Decode(&r); err != nil {
			s.Ended <- &Error{ErrRPC, "the MPS server is gone: " + err.Error()}
			return
		}
		if r.Event {
			s.Ended <- &Error{r.Error, r.Message}
			return
		}
		s.replies <- r
	}
}

func (s *Session) next() (reply, *Error) {
	r, ok := <-s.replies
	if !ok {
		err := <-s.Ended
		s.Ended <- err
		return r, err
	}
	return r, nil
}

func (s *Session) call(c call) *Error {
	if err := send(s.conn, c); err != nil {
		return &Error{ErrRPC, err.Error()}
	}
	r, ended := s.next()
	if ended != nil {
		return ended
	}
	if r.Error != "" {
		return &Error{r.Error, r.Message}
	}
	return nil
}

// Allocate takes memory of a device, by its place in Devices; nil is success.
func (s *Session) Allocate(device int, bytes uint64) *Error {
	return s.call(call{Device: device, Allocate: bytes})
}

// Fault is a fatal fault of this process on the device.
func (s *Session) Fault(device int) *Error { return s.call(call{Device: device, Fault: true}) }

// Close ends the session, and what is allocated in it.
func (s *Session) Close() { s.conn.Close() }
