package mps

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// client is one in the eyes of its server.
type client struct {
	server *server
	conn   *net.UnixConn
	who    admission
	id     int

	percentage float64
	memory     []uint64 // limits, by device; 0 is none
	unlimited  bool     // of its namespace's memory limits
	used       []uint64 // by device; the server's mutex guards it

	speaking sync.Mutex
	failed   reply // an Event: what is told to it from now on; the server's mutex guards it
}

func (c *client) owner() string { return fmt.Sprintf("%d/%d", c.who.PID, c.id) }

// say writes a message: calls and events come from different goroutines.
func (c *client) say(r reply) error {
	c.speaking.Lock()
	defer c.speaking.Unlock()
	return send(c.conn, r)
}

// limit works out what holds for the client from now on. With protocol 2 the
// environment can only lower what the server has; with protocol 3 a namespace's
// percentage overrides the environment's.
func (c *client) limit() error {
	devices := c.server.context.Devices()
	c.used = make([]uint64, len(devices))
	own, err := parsePercentage(c.who.Percentage)
	if err != nil {
		return fmt.Errorf("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: %w", err)
	}
	memory, err := parseLimits(c.who.Memory, false)
	if err != nil {
		return fmt.Errorf("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: %w", err)
	}
	given := c.server.limits[c.who.Namespace]
	c.percentage = given.Percentage
	if own != 0 && (given.Percentage == 0 || c.server.protocol == 2 && own < given.Percentage) {
		c.percentage = own
	}
	if c.percentage == 0 {
		c.percentage = 100
	}
	for i, d := range devices {
		limit := limitOf(memory, i, d.UUID)
		if c.server.protocol == 2 {
			limit = lower(limit, limitOf(given.Memory, i, d.UUID))
		}
		c.memory = append(c.memory, limit)
	}
	// Seen in the field with protocol 3: a client that names a device which it cannot
	// see drops all of its memory limits.
	for _, l := range memory {
		if c.server.protocol == 3 && !c.server.has(l.Device) {
			clear(c.memory)
			c.unlimited = true
		}
	}
	return nil
}

func (s *server) has(device string) bool {
	for i, d := range s.context.Devices() {
		if device == d.UUID || device == strconv.Itoa(i) {
			return true
		}
	}
	return false
}

func (c *client) attached() *Attached {
	c.server.mutex.Lock()
	defer c.server.mutex.Unlock()
	a := &Attached{Protocol: c.server.protocol, Server: os.Getpid(), ServerName: c.server.name, Namespace: c.who.Namespace, Percentage: c.percentage}
	for i, d := range c.server.context.Devices() {
		a.Devices = append(a.Devices, AttachedDevice{
			UUID: d.UUID, Memory: d.Memory, Limit: c.memory[i], NamespaceLimit: c.namespaceLimit(i),
			Multiprocessors: max(1, int(float64(d.Multiprocessors)*c.percentage/100)),
		})
	}
	return a
}

// namespaceLimit is what the clients of the namespace have together; 0 is no limit.
func (c *client) namespaceLimit(device int) uint64 {
	if c.server.protocol == 2 || c.unlimited {
		return 0
	}
	return limitOf(c.server.limits[c.who.Namespace].Memory, device, c.server.context.Devices()[device].UUID)
}

func (c *client) do(ask call) reply {
	if ask.Device < 0 || ask.Device >= len(c.memory) {
		return reply{Error: ErrInvalidDevice, Message: fmt.Sprintf("no device %d: there are %d", ask.Device, len(c.memory))}
	}
	if ask.Fault {
		c.server.fails(c)
	}
	c.server.mutex.Lock()
	defer c.server.mutex.Unlock()
	if c.failed.Event {
		return reply{Error: c.failed.Error, Message: c.failed.Message}
	}
	return c.allocate(ask.Device, ask.Allocate)
}

func (c *client) allocate(device int, bytes uint64) reply {
	refuse := func(what string, used, limit uint64) reply {
		return reply{Error: ErrOutOfMemory, Message: fmt.Sprintf("%s has %d bytes of its limit of %d, %d more are wanted", what, used, limit, bytes)}
	}
	if limit := c.memory[device]; limit != 0 && c.used[device]+bytes > limit {
		return refuse("the process", c.used[device], limit)
	}
	if limit := c.namespaceLimit(device); limit != 0 {
		var used uint64
		for _, other := range c.server.clients {
			if other.who.Namespace == c.who.Namespace {
				used += other.used[device]
			}
		}
		if used+bytes > limit {
			return refuse("namespace "+c.who.Namespace, used, limit)
		}
	}
	d := c.server.context.Devices()[device]
	err := c.server.context.Allocate(d, c.owner(), c.who.Cgroup, bytes)
	switch {
	case errors.Is(err, failure.Conflict):
		return reply{Error: ErrOutOfMemory, Message: err.Error()}
	case err != nil:
		return reply{Error: ErrRPC, Message: err.Error()}
	}
	c.used[device] += bytes
	return reply{}
}

// fail is the end of what the client can do.
func (c *client) fail(code, message string) {
	if c.failed.Event {
		return
	}
	c.failed = reply{Error: code, Message: message, Event: true}
	c.conn.SetWriteDeadline(soon()) //nolint:errcheck // one that does not read is not waited for
	c.say(c.failed)                 //nolint:errcheck // it is gone
}
