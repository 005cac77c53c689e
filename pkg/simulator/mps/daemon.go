package mps

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// Names of the programs.
const (
	ControlName = "nvidia-cuda-mps-control"
	ServerName  = "nvidia-cuda-mps-server"
)

// Daemon is a control daemon.
type Daemon struct {
	Machine *simulator.Machine
	// Server is the path of the program that is started as a server.
	Server          string
	PipeDir, LogDir string
	Protocol        int
	// MultiUser: clients of all users have one server, root's.
	MultiUser bool
	// Devices are what clients see, by UUID.
	Devices []string
	// Percentage and Memory are the environment's, for clients of protocol 2.
	Percentage, Memory string

	commanding sync.Mutex // one command at a time, but for quit
	priority   int
	mutex      sync.Mutex // guards what follows
	servers    []*serverProcess
	defaults   limits // of protocol 2's clients, for servers to come

	log  io.Writer
	quit chan struct{} // closed: no new clients
	done chan func()   // to end; what is got is called when nothing is left
}

func (d *Daemon) pidFile() string { return filepath.Join(d.PipeDir, ControlName+".pid") }

// Run is the daemon's life. ready is called when clients can come; stop ends it, with
// its servers.
func (d *Daemon) Run(stop <-chan os.Signal, ready func()) (err error) {
	for _, dir := range []string{d.PipeDir, d.LogDir} {
		if err := makeDir(dir); err != nil {
			return err
		}
	}
	if conn, err := dial(d.PipeDir); err == nil {
		conn.Close()
		return errors.New("An instance of this daemon is already running")
	}
	log, err := os.OpenFile(filepath.Join(d.LogDir, "control.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	d.log, d.quit, d.done = log, make(chan struct{}), make(chan func())
	if err := d.setDefaults(); err != nil {
		return err
	}
	listener, err := listen(d.PipeDir)
	if err != nil {
		return err
	}
	answer := func() {}
	defer func() {
		d.killAll()
		listener.Close()
		err = errors.Join(err, os.Remove(filepath.Join(d.PipeDir, socketName)), os.Remove(d.pidFile()))
		answer()
	}()
	if err := os.WriteFile(d.pidFile(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return err
	}
	d.logf("Starting control daemon using socket %s", filepath.Join(d.PipeDir, socketName))
	go d.accept(listener, route{})
	ready()
	select {
	case <-stop:
	case answer = <-d.done:
	}
	d.logf("Exit")
	return nil
}

func (d *Daemon) setDefaults() (err error) {
	if d.Protocol != 2 {
		return nil
	}
	if d.defaults.Percentage, err = parsePercentage(d.Percentage); err != nil {
		return err
	}
	d.defaults.Memory, err = parseLimits(d.Memory, false)
	return err
}

func (d *Daemon) logf(format string, args ...any) {
	fmt.Fprintf(d.log, "[%s Control %5d] %s\n", time.Now().Format("2006-01-02 15:04:05.000"), os.Getpid(), fmt.Sprintf(format, args...))
}

// route is where a socket leads: with protocol 3 to a server and its namespace.
type route struct {
	server    *serverProcess // nil: the one of the client's user
	namespace string
}

func (d *Daemon) accept(listener *net.UnixListener, to route) {
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			return // closed
		}
		go d.handle(conn, to)
	}
}

func (d *Daemon) handle(conn *net.UnixConn, to route) {
	defer conn.Close()
	who, err := peer(conn)
	if err != nil {
		return
	}
	var ask request
	if err := json.NewDecoder(conn).Decode(&ask); err != nil {
		return
	}
	if ask.Attach != nil {
		if err := d.attach(conn, to, admission{attach: *ask.Attach, PID: int(who.Pid), UID: int(who.Uid)}); err != nil {
			d.logf("Refusing client %d: %v", who.Pid, err)
			send(conn, reply{Error: ErrServerNotReady, Message: err.Error()}) //nolint:errcheck // it is gone
		}
		return
	}
	end := false
	a := answer{Error: "Only the daemon's user and root may give commands"}
	if uid := int(who.Uid); uid == 0 || uid == os.Getuid() {
		a, end = d.command(ask)
	}
	answer := func() { send(conn, a) } //nolint:errcheck // it is gone
	if !end {
		answer()
		return
	}
	answered := make(chan struct{})
	d.done <- func() { answer(); close(answered) }
	<-answered
}

// command does what an administrator wants; end says that it was to quit.
func (d *Daemon) command(ask request) (a answer, end bool) {
	d.logf("NEW COMMAND: %q", ask.Command)
	var err error
	switch {
	case d.Protocol == 3 && ask.Stdin:
		err = errors.New("Protocol 3: give commands as arguments: MODULE VERB")
	case d.Protocol == 2 && !ask.Stdin:
		err = errors.New("Protocol 2: give commands on standard input")
	case d.Protocol == 3:
		a.Output, end, err = d.command3(ask.Command)
	default:
		a.Output, end, err = d.command2(ask.Command)
	}
	if err != nil {
		a.Error = err.Error()
		d.logf("%v", err)
	}
	return a, end
}

// attach finds a client's server, or starts it, and hands the client over.
func (d *Daemon) attach(conn *net.UnixConn, to route, a admission) error {
	a.Namespace = to.namespace
	s := to.server
	if s == nil {
		var err error
		if s, err = d.serverOf(a.UID); err != nil {
			return err
		}
		if d.Protocol == 3 {
			a.Namespace = defaultNamespace
		}
	}
	return s.admit(conn, a)
}

// serverOf is the server of a user's clients. With protocol 2 one server is there at
// a time: where it is another user's the client waits until that one's clients have gone.
func (d *Daemon) serverOf(uid int) (*serverProcess, error) {
	if d.MultiUser {
		uid = 0
	}
	for {
		d.mutex.Lock()
		if d.quitting() {
			d.mutex.Unlock()
			return nil, errors.New("the control daemon is quitting")
		}
		if d.Protocol == 3 {
			defer d.mutex.Unlock()
			return d.userServer3(uid)
		}
		if len(d.servers) == 0 {
			defer d.mutex.Unlock()
			return d.startServer2(uid)
		}
		s := d.servers[0]
		if s.uid == uid && !s.ending {
			d.mutex.Unlock()
			return s, nil
		}
		s.ending = true
		d.mutex.Unlock()
		s.drain()
		select {
		case <-s.exited:
			d.forget(s)
		case <-d.quit:
		}
	}
}

func (d *Daemon) quitting() bool {
	select {
	case <-d.quit:
		return true
	default:
		return false
	}
}

// forget takes a server that has ended off the list, with its sockets.
func (d *Daemon) forget(s *serverProcess) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if !slices.Contains(d.servers, s) {
		return
	}
	d.servers = slices.DeleteFunc(d.servers, func(other *serverProcess) bool { return other == s })
	s.closeSockets(d)
	d.logf("Server %d exited", s.process.Pid)
}

func (d *Daemon) all() []*serverProcess {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return slices.Clone(d.servers)
}

func (d *Daemon) killAll() {
	for _, s := range d.all() {
		s.kill()
		d.forget(s)
	}
}

// stopClients lets no more clients in.
func (d *Daemon) stopClients() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if !d.quitting() {
		close(d.quit)
	}
}
