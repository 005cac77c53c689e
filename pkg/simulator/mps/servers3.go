package mps

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func (d *Daemon) server(name string) (*serverProcess, error) {
	for _, s := range d.all() {
		if s.name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("server %q not found", name)
}

func (d *Daemon) createServer(a arguments) (string, error) {
	if err := a.check(0, 1, "uid", "allowed-devices"); err != nil {
		return "", err
	}
	uid, err := strconv.Atoi(cmp.Or(a.keys["uid"], "0"))
	if err != nil || d.MultiUser && uid != 0 {
		return "", fmt.Errorf("uid %s: give a number, and in multiuser mode 0", a.keys["uid"])
	}
	if len(a.positions) == 0 && a.keys["uid"] == "" {
		return "", errors.New("give a name or --uid")
	}
	name := userServer(uid)
	if len(a.positions) > 0 {
		name = a.positions[0]
	}
	devices, err := d.allowed(a.keys["allowed-devices"])
	if err != nil {
		return "", err
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	_, err = d.startServer3(name, uid, devices)
	return "", err
}

// allowed are the daemon's devices that a list names; no list names all.
func (d *Daemon) allowed(list string) ([]string, error) {
	if list == "" {
		return d.Devices, nil
	}
	var devices []string
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(d.Devices, func(uuid string) bool { return strings.EqualFold(uuid, name) })
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(d.Devices) {
			i = n
		}
		if i < 0 {
			return nil, fmt.Errorf("device %s is none of the daemon's", name)
		}
		devices = append(devices, d.Devices[i])
	}
	return devices, nil
}

// userServer is the name of the server of a user's clients that name none.
func userServer(uid int) string { return "uid_" + strconv.Itoa(uid) }

// userServer3 finds or starts it; the daemon's mutex is held.
func (d *Daemon) userServer3(uid int) (*serverProcess, error) {
	for _, s := range d.servers {
		if s.name == userServer(uid) {
			return s, nil
		}
	}
	return d.startServer3(userServer(uid), uid, d.Devices)
}

// startServer3 starts a server with its default namespace; the daemon's mutex is held.
func (d *Daemon) startServer3(name string, uid int, devices []string) (*serverProcess, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(d.servers, func(s *serverProcess) bool { return s.name == name }) {
		return nil, fmt.Errorf("server %q exists", name)
	}
	s := &serverProcess{name: name, uid: uid, devices: devices, limits: map[string]limits{}, sockets: map[string]net.Listener{}}
	if err := d.start(s); err != nil {
		return nil, err
	}
	for dir, namespace := range map[string]string{"": defaultNamespace, defaultNamespace: defaultNamespace} {
		if err := d.open(s, dir, namespace); err != nil {
			s.closeSockets(d)
			s.kill()
			return nil, err
		}
	}
	d.servers = append(d.servers, s)
	return s, nil
}

func (s *serverProcess) dir(d *Daemon, name string) string {
	return filepath.Join(d.PipeDir, s.name, name)
}

// open makes the socket that leads to a namespace.
func (d *Daemon) open(s *serverProcess, dir, namespace string) error {
	listener, err := listen(s.dir(d, dir))
	if err != nil {
		return err
	}
	s.sockets[dir] = listener
	if _, ok := s.limits[namespace]; !ok {
		s.limits[namespace] = limits{}
	}
	go d.accept(listener, route{server: s, namespace: namespace})
	return nil
}

func (s *serverProcess) closeSockets(d *Daemon) {
	for _, l := range s.sockets {
		l.Close()
	}
	if s.name != "" {
		os.RemoveAll(s.dir(d, "")) // what is left leads nowhere
	}
}

func (d *Daemon) deleteServer(a arguments) (string, error) {
	if err := a.check(1, 1, "force"); err != nil {
		return "", err
	}
	s, err := d.server(a.positions[0])
	if err != nil {
		return "", err
	}
	if r, err := s.report(); err == nil && len(r.Clients) > 0 && a.keys["force"] == "" {
		return "", fmt.Errorf("server %q has %d active clients: use --force", s.name, len(r.Clients))
	}
	s.kill()
	d.forget(s)
	return "", nil
}

// setServer limits the default namespace, and no other.
func (d *Daemon) setServer(a arguments) (string, error) {
	if err := a.check(1, 1, "pinned-memory-limit", "active-thread-percentage"); err != nil {
		return "", err
	}
	s, err := d.server(a.positions[0])
	if err != nil {
		return "", err
	}
	return "", s.change(defaultNamespace, a.limit)
}

// limit changes limits as the options say.
func (a arguments) limit(l *limits) (err error) {
	if len(a.keys) == 0 || len(a.keys) == 1 && a.keys["server"] != "" {
		return fmt.Errorf("%s: give at least one option", a.name)
	}
	if text, ok := a.keys["active-thread-percentage"]; ok {
		if err := l.setPercentage(text); err != nil {
			return err
		}
	}
	if text, ok := a.keys["pinned-memory-limit"]; ok {
		if l.Memory, err = parseLimits(text, true); err != nil {
			return err
		}
	}
	return nil
}

var serverColumns = []string{"name", "uid", "pid", "status", "pipe-directory", "allowed-devices", "context-ids"}

func (d *Daemon) serverRow(s *serverProcess) []string {
	return []string{s.name, strconv.Itoa(s.uid), strconv.Itoa(s.process.Pid), s.status3(), s.dir(d, ""), strings.Join(s.devices, ";"), "-"}
}

// status3 is the status in protocol 3's words, of which only Ready is documented.
func (s *serverProcess) status3() string {
	r, err := s.report()
	switch {
	case err != nil:
		return "Exited"
	case r.Fault:
		return "Fault"
	}
	return "Ready"
}

func (d *Daemon) listServers(a arguments) (string, error) {
	if err := a.check(0, 1, "format"); err != nil {
		return "", err
	}
	var rows [][]string
	for _, s := range d.all() {
		if len(a.positions) == 0 || a.positions[0] == s.name {
			rows = append(rows, d.serverRow(s))
		}
	}
	return a.list(serverColumns, rows)
}

func (d *Daemon) getServer(a arguments) (string, error) {
	if err := a.check(2, 2); err != nil {
		return "", err
	}
	s, err := d.server(a.positions[0])
	if err != nil {
		return "", err
	}
	return a.get(a.positions[1], serverColumns[:6], d.serverRow(s))
}
