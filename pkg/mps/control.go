package mps

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/mps/process"
)

// serverName is what the one server of a daemon of protocol 3 is called.
const serverName = "mps"

// ask gives the set's control daemon a command, as its protocol wants it
// (docs.nvidia.com/deploy/mps, "Legacy MPS v2 Interface" and "MPS v3 Interface").
func (m *Manager) ask(ctx context.Context, s *set, words ...string) (string, error) {
	if s.record.Protocol == 3 {
		return m.run(ctx, s, "", controlProgram, words...)
	}
	return m.run(ctx, s, strings.Join(words, " ")+"\n", controlProgram)
}

// quit asks the daemon to end. An error is as good as none: what does not end is killed.
func (m *Manager) quit(ctx context.Context, s *set) {
	ctx, cancel := context.WithTimeout(ctx, quitPatience)
	defer cancel()
	words := []string{"quit", "-t", "1"} // seconds for its clients
	if s.record.Protocol == 3 {
		words = []string{"-q"}
	}
	if _, err := m.ask(ctx, s, words...); err != nil {
		m.options.Log.Warn("An MPS control daemon does not quit", "devices", s.devices, "err", err)
	}
}

// server is one of a control daemon's.
type server struct {
	name  string // process ID, with protocol 3 its name
	fault bool
	pid   int // 0 where the list has none
}

// servers lists the daemon's servers.
func (m *Manager) servers(ctx context.Context, s *set) ([]server, error) {
	if s.record.Protocol == 3 {
		output, err := m.ask(ctx, s, "server", "list", "--format=csv,noheader")
		if err != nil {
			return nil, err
		}
		return parseServers(output)
	}
	output, err := m.ask(ctx, s, "get_server_list")
	if err != nil {
		return nil, err
	}
	var all []server
	for _, pid := range strings.Fields(output) {
		if _, err := strconv.Atoi(pid); err != nil { // errors are output, too
			return nil, fmt.Errorf("get_server_list%s", words([]byte(output)))
		}
		status, err := m.ask(ctx, s, "get_server_status", pid)
		if err != nil {
			return nil, err
		}
		all = append(all, server{name: pid, fault: strings.TrimSpace(status) == "FAULT"})
	}
	return all, nil
}

// parseServers reads name,uid,pid,status,… of protocol 3. Of the words for status only
// Ready is documented.
func parseServers(output string) ([]server, error) {
	var all []server
	for line := range strings.Lines(output) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		if len(fields) < 4 {
			return nil, fmt.Errorf("server list: %q is no line of name, uid, pid, status", line)
		}
		pid, _ := strconv.Atoi(strings.TrimSpace(fields[2]))
		all = append(all, server{name: fields[0], fault: strings.EqualFold(fields[3], "fault"), pid: pid})
	}
	return all, nil
}

// makeServer makes the server of a daemon of protocol 3, with the set's namespaces. Its
// process is nil where it cannot be known.
func (m *Manager) makeServer(ctx context.Context, s *set) (*process.Process, error) {
	if _, err := m.ask(ctx, s, "server", "create", serverName, "--uid=0", "--allowed-devices="+strings.Join(s.devices, ",")); err != nil {
		return nil, err
	}
	for name, limits := range s.record.Namespaces {
		if err := m.makeNamespace(ctx, s, name, hardware.MPSLimits{}, limits); err != nil {
			return nil, err
		}
	}
	servers, err := m.servers(ctx, s)
	if err != nil {
		return nil, err
	}
	i := indexServer(servers)
	if i < 0 {
		return nil, fmt.Errorf("the MPS server over %q ended at once", s.devices)
	}
	process, err := process.Open(servers[i].pid)
	if err != nil { // the list may not have it, or count otherwise
		m.options.Log.Warn("The process of an MPS server is not known: the server is asked for every 2 s", "devices", s.devices, "err", err)
	}
	return process, nil
}

// indexServer is the place of the one server of protocol 3, or -1.
func indexServer(servers []server) int {
	return slices.IndexFunc(servers, func(s server) bool { return s.name == serverName })
}
