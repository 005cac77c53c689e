package mps

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// Environment of a server, beside the devices in CUDA_VISIBLE_DEVICES.
const (
	protocolVariable = "CUDA_MPS_PROTOCOL_VERSION"
	nameVariable     = "DOVETAIL_SIM_MPS_SERVER" // protocol 3: the server's name
	limitVariable    = "DOVETAIL_SIM_MPS_CLIENTS"
)

// server has the devices, for all its clients.
type server struct {
	protocol   int
	name       string
	maxClients int
	context    *simulator.Context
	control    *os.File

	mutex    sync.Mutex
	limits   map[string]limits // by namespace; protocol 2: ""
	clients  []*client         // in the order of their IDs
	nextID   int
	fault    bool
	draining bool // also when the control daemon is gone
	idle     chan struct{}
}

// Serve runs a server that a control daemon has started, until it may end. control is
// its connection to it.
//
// When the control daemon dies the server goes on for the clients that it has, and
// has the devices that long (assumed).
func Serve(machine *simulator.Machine, control *os.File) error {
	context, err := machine.OpenContext(strings.Split(os.Getenv("CUDA_VISIBLE_DEVICES"), ","))
	if err != nil {
		return err
	}
	defer context.Close()
	s := &server{name: os.Getenv(nameVariable), context: context, control: control,
		limits: map[string]limits{}, idle: make(chan struct{})}
	if s.protocol, err = strconv.Atoi(os.Getenv(protocolVariable)); err != nil {
		return err
	}
	if s.maxClients, err = strconv.Atoi(os.Getenv(limitVariable)); err != nil {
		return err
	}
	go s.obey()
	if err := s.report(0); err != nil { // ready
		return err
	}
	<-s.idle
	return nil
}

// obey does what the control daemon says, until it is gone.
func (s *server) obey() {
	for {
		data, conn, err := receiveMessage(s.control)
		var o order
		if err == nil {
			err = json.Unmarshal(data, &o)
		}
		if err != nil || len(data) == 0 {
			s.drain()
			return
		}
		switch {
		case o.Admit != nil:
			if conn != nil {
				go s.serve(conn, *o.Admit)
			}
			continue
		case o.Limits != nil:
			s.mutex.Lock()
			s.limits[o.Namespace] = *o.Limits
			s.mutex.Unlock()
		case o.Drain:
			s.drain()
		}
		if s.report(o.Terminate) != nil {
			s.drain()
			return
		}
	}
}

// report answers each order but an admission; terminate is a client to end before.
func (s *server) report(terminate int) error {
	s.mutex.Lock()
	r := report{Fault: s.fault}
	if terminate != 0 && s.end(terminate) == 0 {
		r.Error = fmt.Sprintf("no client %d", terminate)
	}
	for _, c := range s.clients {
		r.Clients = append(r.Clients, clientInfo{ID: c.id, PID: c.who.PID, Namespace: c.who.Namespace, Command: c.who.Command})
	}
	s.mutex.Unlock()
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return sendMessage(s.control, data)
}

func (s *server) end(pid int) (ended int) {
	for _, c := range s.clients {
		if c.who.PID == pid {
			c.fail(ErrTerminated, "terminated by an administrator")
			ended++
		}
	}
	return ended
}

func (s *server) drain() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.draining {
		s.draining = true
		s.endIfIdle()
	}
}

func (s *server) endIfIdle() {
	if s.draining && len(s.clients) == 0 {
		close(s.idle)
	}
}

// serve is one client's life.
func (s *server) serve(conn *net.UnixConn, who admission) {
	defer conn.Close()
	c := &client{server: s, conn: conn, who: who}
	if code, message := s.admit(c); code != "" {
		send(conn, reply{Error: code, Message: message}) //nolint:errcheck // it is gone
		return
	}
	defer s.leave(c)
	if c.say(reply{Attached: c.attached()}) != nil {
		return
	}
	decoder := json.NewDecoder(conn)
	for {
		var ask call
		if decoder.Decode(&ask) != nil {
			return
		}
		if c.say(c.do(ask)) != nil {
			return
		}
	}
}

func (s *server) admit(c *client) (code, message string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch {
	case s.fault:
		return ErrServerNotReady, "the server recovers from a client's fault, until all clients have gone"
	case s.draining:
		return ErrServerNotReady, "the server is ending"
	case len(s.clients) >= s.maxClients:
		return ErrMaxClients, fmt.Sprintf("the server has its %d clients", s.maxClients)
	}
	if err := c.limit(); err != nil {
		return ErrInvalidArgument, err.Error()
	}
	s.nextID++
	c.id = s.nextID
	s.clients = append(s.clients, c)
	logServer("client %d connected", c.who.PID)
	return "", ""
}

func (s *server) leave(c *client) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.context.Free(c.owner()) //nolint:errcheck // the machine is gone
	s.clients = slices.DeleteFunc(s.clients, func(other *client) bool { return other == c })
	logServer("client %d exited", c.who.PID)
	if len(s.clients) == 0 {
		s.fault = false
	}
	s.endIfIdle()
}

// fails is a client's fatal fault: it takes all clients along.
func (s *server) fails(by *client) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.fault = true
	logServer("fatal fault of client %d", by.who.PID)
	for _, c := range s.clients {
		c.fail(ErrLaunchFailed, fmt.Sprintf("fatal fault of client %d", by.who.PID))
	}
}

// logServer writes to server.log, which is the server's standard output: what becomes
// of clients stands there.
func logServer(format string, args ...any) {
	fmt.Printf("[%s Server %5d] %s\n", time.Now().Format("2006-01-02 15:04:05.000"), os.Getpid(), fmt.Sprintf(format, args...))
}
