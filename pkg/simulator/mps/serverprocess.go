package mps

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// serverProcess is a server in the eyes of its control daemon.
type serverProcess struct {
	name    string // protocol 3: the server's
	uid     int
	devices []string
	limits  map[string]limits // by namespace; protocol 2: ""
	sockets map[string]net.Listener

	process *os.Process
	control *os.File
	asking  sync.Mutex    // one order at a time
	exited  chan struct{} // closed
	ending  bool          // guarded by the daemon's mutex: admits nobody more
}

// errGone is a server's that has ended.
var errGone = errors.New("the server has ended")

// start starts a server's process and waits until it has the devices.
func (d *Daemon) start(s *serverProcess) error {
	clients, err := d.maxClients(s.devices)
	if err != nil {
		return err
	}
	logDir := filepath.Join(d.LogDir, s.name)
	if err := makeDir(logDir); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(logDir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	ours, theirs, err := pair()
	if err != nil {
		return err
	}
	s.process, err = os.StartProcess(d.Server, []string{ServerName}, &os.ProcAttr{
		Files: []*os.File{theirs, log, log},
		Env: []string{
			"CUDA_VISIBLE_DEVICES=" + strings.Join(s.devices, ","),
			"CUDA_MPS_PIPE_DIRECTORY=" + d.PipeDir, "CUDA_MPS_LOG_DIRECTORY=" + d.LogDir,
			protocolVariable + "=" + strconv.Itoa(d.Protocol), nameVariable + "=" + s.name,
			limitVariable + "=" + strconv.Itoa(clients), simulator.RootVariable + "=" + d.Machine.Root(),
		},
	})
	theirs.Close() // so that the server's end is seen
	if err != nil {
		ours.Close()
		return err
	}
	s.control, s.exited = ours, make(chan struct{})
	go func() {
		s.process.Wait() //nolint:errcheck // how it ended does not matter
		close(s.exited)
		d.forget(s)
	}()
	if data, _, err := receiveMessage(ours); err != nil || len(data) == 0 {
		<-s.exited
		return fmt.Errorf("server did not start: see %s", log.Name())
	}
	for namespace, l := range s.limits {
		if err := s.limit(namespace, l); err != nil {
			return err
		}
	}
	d.logf("Started server %d for user %d", s.process.Pid, s.uid)
	return nil
}

// maxClients is what the smallest of the devices serves.
func (d *Daemon) maxClients(devices []string) (int, error) {
	state, err := d.Machine.State()
	if err != nil {
		return 0, err
	}
	least := 0
	for _, name := range devices {
		device, err := state.Device(name)
		if err != nil {
			return 0, err
		}
		if n := device.MPSClients(state); least == 0 || n < least {
			least = n
		}
	}
	return least, nil
}

// ask gives an order and returns the answer.
func (s *serverProcess) ask(o order) (report, error) {
	s.asking.Lock()
	defer s.asking.Unlock()
	data, err := json.Marshal(o)
	if err != nil {
		return report{}, err
	}
	if err := sendMessage(s.control, data); err != nil {
		return report{}, errGone
	}
	if data, _, err = receiveMessage(s.control); err != nil || len(data) == 0 {
		return report{}, errGone
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return report{}, err
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

func (s *serverProcess) report() (report, error) { return s.ask(order{Report: true}) }

func (s *serverProcess) limit(namespace string, l limits) error {
	_, err := s.ask(order{Namespace: namespace, Limits: &l})
	return err
}

// admit gives a client's connection to the server, which answers the client.
func (s *serverProcess) admit(conn *net.UnixConn, a admission) error {
	data, err := json.Marshal(order{Admit: &a})
	if err != nil {
		return err
	}
	f, err := conn.File()
	if err != nil {
		return err
	}
	defer f.Close()
	s.asking.Lock()
	defer s.asking.Unlock()
	return sendMessage(s.control, data, int(f.Fd()))
}

// drain lets it end with its last client.
func (s *serverProcess) drain() { s.ask(order{Drain: true}) } //nolint:errcheck // gone is what it shall be

// kill ends it, and its clients' work.
func (s *serverProcess) kill() {
	s.process.Kill() //nolint:errcheck // ended is what it shall be
	<-s.exited
}
