package mps

import (
	"errors"
	"fmt"
	"strconv"
)

// ps lists clients. The namespace is that of the client's process IDs, which the
// daemon cannot tell here.
func (d *Daemon) ps(args []string) (string, error) {
	if len(args) > 0 && (len(args) != 2 || args[0] != "-p") {
		return "", errors.New("Usage: ps [-p PID]")
	}
	output := fmt.Sprintf("%-8s %-8s %-8s %-24s %-12s %s\n", "PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND")
	for _, s := range d.all() {
		if len(args) > 0 && strconv.Itoa(s.process.Pid) != args[1] {
			continue
		}
		r, err := s.report()
		if err != nil {
			continue // it has ended meanwhile
		}
		for _, c := range r.Clients {
			for _, uuid := range s.devices {
				output += fmt.Sprintf("%-8d %-8d %-8d %-24.18s %-12d %s\n", c.PID, c.ID, s.process.Pid, uuid, 0, c.Command)
			}
		}
	}
	return output, nil
}

// deviceClients is a line for each device, with its clients (the form is assumed).
func (d *Daemon) deviceClients(args []string) (string, error) {
	output := ""
	for _, s := range d.all() {
		if len(args) > 0 && strconv.Itoa(s.process.Pid) != args[0] {
			continue
		}
		r, err := s.report()
		if err != nil {
			continue
		}
		for _, uuid := range s.devices {
			output += uuid
			for _, c := range r.Clients {
				output += " " + strconv.Itoa(c.PID)
			}
			output += "\n"
		}
	}
	return output, nil
}
