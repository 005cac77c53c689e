package mps

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// namespaceOf is the server that a namespace's command names, and the namespace.
func (d *Daemon) namespaceOf(a arguments, server string) (*serverProcess, string, error) {
	if server == "" {
		return nil, "", fmt.Errorf("%s: give --server", a.name)
	}
	s, err := d.server(server)
	if err != nil {
		return nil, "", err
	}
	name := a.positions[0]
	if _, ok := s.limits[name]; !ok {
		return s, name, fmt.Errorf("namespace %q not found in server %q", name, server)
	}
	return s, name, nil
}

func (d *Daemon) createNamespace(a arguments) (string, error) {
	if err := a.check(1, 1, "server"); err != nil {
		return "", err
	}
	s, name, err := d.namespaceOf(a, a.keys["server"])
	switch {
	case s == nil:
		return "", err
	case err == nil:
		return "", fmt.Errorf("namespace %q exists in server %q", name, s.name)
	}
	if err := checkName(name); err != nil {
		return "", err
	}
	return "", d.open(s, name, name)
}

func (d *Daemon) deleteNamespace(a arguments) (string, error) {
	if err := a.check(1, 1, "server", "force"); err != nil {
		return "", err
	}
	s, name, err := d.namespaceOf(a, a.keys["server"])
	if err != nil {
		return "", err
	}
	if name == defaultNamespace {
		return "", errors.New("the default namespace stays")
	}
	r, err := s.report()
	if err != nil {
		return "", err
	}
	for _, c := range r.Clients {
		if c.Namespace == name && a.keys["force"] == "" {
			return "", fmt.Errorf("namespace %q has active clients: use --force", name)
		}
	}
	s.sockets[name].Close()
	delete(s.sockets, name)
	delete(s.limits, name)
	return "", os.RemoveAll(s.dir(d, name))
}

func (d *Daemon) setNamespace(a arguments) (string, error) {
	if err := a.check(1, 1, "server", "pinned-memory-limit", "active-thread-percentage"); err != nil {
		return "", err
	}
	s, name, err := d.namespaceOf(a, a.keys["server"])
	if err != nil {
		return "", err
	}
	return "", s.change(name, a.limit)
}

var namespaceColumns = []string{
	"name", "server", "server-status", "pinned-memory-limit", "active-thread-percentage", "client-priority", "pipe-directory",
}

func (d *Daemon) namespaceRow(s *serverProcess, name string) []string {
	l := s.limits[name]
	var memory []string
	for _, m := range l.Memory {
		memory = append(memory, strings.TrimPrefix(m.Device+"="+formatSize(m.Bytes), "="))
	}
	percentage := ""
	if l.Percentage != 0 {
		percentage = strconv.FormatFloat(l.Percentage, 'g', -1, 64)
	}
	return []string{name, s.name, s.status3(), cmp.Or(strings.Join(memory, ";"), "-"), cmp.Or(percentage, "-"), "-", s.dir(d, name)}
}

func (d *Daemon) listNamespaces(a arguments) (string, error) {
	if err := a.check(0, 1, "server", "format"); err != nil {
		return "", err
	}
	var rows [][]string
	for _, s := range d.all() {
		if a.keys["server"] != "" && a.keys["server"] != s.name {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(s.limits)) {
			if len(a.positions) == 0 || a.positions[0] == name {
				rows = append(rows, d.namespaceRow(s, name))
			}
		}
	}
	return a.list(namespaceColumns, rows)
}

func (d *Daemon) getNamespace(a arguments) (string, error) {
	if err := a.check(3, 3); err != nil {
		return "", err
	}
	s, name, err := d.namespaceOf(a, a.positions[1])
	if err != nil {
		return "", err
	}
	return a.get(a.positions[2], namespaceColumns, d.namespaceRow(s, name))
}

func (d *Daemon) listClients(a arguments) (string, error) {
	if err := a.check(0, 0, "server", "all", "format"); err != nil {
		return "", err
	}
	var rows [][]string
	for _, s := range d.all() {
		if a.keys["server"] != "" && a.keys["server"] != s.name {
			continue
		}
		r, err := s.report()
		if err != nil {
			continue // it has ended meanwhile
		}
		for _, c := range r.Clients {
			for i := range s.devices {
				rows = append(rows, []string{strconv.Itoa(c.PID), s.name, strconv.Itoa(i), c.Namespace, c.Command})
			}
		}
	}
	return a.list([]string{"pid", "server", "device", "maws-ns", "cmd"}, rows)
}

func (d *Daemon) terminateClient(a arguments) (string, error) {
	if err := a.check(1, 1); err != nil {
		return "", err
	}
	pid, err := strconv.Atoi(a.positions[0])
	if err != nil {
		return "", err
	}
	for _, s := range d.all() {
		if _, err := s.ask(order{Terminate: pid}); err == nil {
			return "", nil
		}
	}
	return "", fmt.Errorf("client %d not found", pid)
}
