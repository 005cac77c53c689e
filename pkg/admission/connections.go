package admission

import (
	"net"
	"sync"
	"time"
)

// What connections may take of time and memory, whoever makes them.
const (
	// maxConnections at a time. An API server has one or two, since HTTP/2 has many
	// requests on each.
	maxConnections = 64
	// streams are requests at a time on one connection. They, too, take memory while they
	// wait: 64 KiB each, with headers as large as may be, and what Go has not collected.
	streams = 32
	// received are the bytes that one connection may have sent and nobody has read.
	received = 256 << 10
	// maxHeader is the most that is read of a request's header, in bytes.
	maxHeader = 16 << 10

	headerTimeout = 5 * time.Second
	// callTimeout is how long a request may take until all of it is read, and how long
	// until its answer is sent.
	callTimeout = 10 * time.Second
	idleTimeout = 2 * time.Minute
)

// limited has so many connections at most, and lets others wait in the kernel's queue.
type limited struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	close  func()
}

func limit(l net.Listener, connections int) net.Listener {
	closed := make(chan struct{})
	return &limited{
		Listener: l, places: make(chan struct{}, connections),
		closed: closed, close: sync.OnceFunc(func() { close(closed) }),
	}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &placed{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.close()
	return l.Listener.Close()
}

// placed is a connection that has one of the places.
type placed struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *placed) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
