package mps

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// command2 is a command of protocol 2.
func (d *Daemon) command2(words []string) (output string, end bool, err error) {
	if len(words) == 0 {
		return "", false, nil
	}
	name, args := words[0], words[1:]
	if name == "quit" {
		err := d.quit2(args)
		return "", err == nil, err
	}
	c, ok := commands2[name]
	switch {
	case !ok:
		return "", false, fmt.Errorf("Unknown command %q", name)
	case len(args) < c.least || len(args) > c.most:
		return "", false, fmt.Errorf("Usage: %s %s", name, c.usage)
	}
	d.commanding.Lock()
	defer d.commanding.Unlock()
	output, err = c.do(d, args)
	return output, false, err
}

type command2 struct {
	usage       string
	least, most int
	do          func(d *Daemon, args []string) (string, error)
}

var commands2 = map[string]command2{
	"get_server_list":   {"", 0, 0, (*Daemon).serverList},
	"get_server_status": {"PID", 1, 1, onServer(func(s *serverProcess, _ *Daemon, _ []string) (string, error) { return s.status() })},
	"start_server":      {"-uid UID", 2, 2, (*Daemon).startCommand},
	"shutdown_server":   {"PID [-f]", 1, 2, onServer((*serverProcess).shutdown)},
	"get_client_list": {"PID", 1, 1, onServer(func(s *serverProcess, _ *Daemon, _ []string) (string, error) {
		r, err := s.report()
		output := ""
		for _, c := range r.Clients {
			output += fmt.Sprintln(c.PID)
		}
		return output, err
	})},
	"get_device_client_list": {"[PID]", 0, 1, (*Daemon).deviceClients},
	"terminate_client": {"SERVER_PID CLIENT_PID", 2, 2, onServer(func(s *serverProcess, _ *Daemon, args []string) (string, error) {
		pid, err := strconv.Atoi(args[0])
		if err == nil {
			_, err = s.ask(order{Terminate: pid})
		}
		return "0\n", err
	})},
	"ps": {"[-p PID]", 0, 2, (*Daemon).ps},
	"get_default_active_thread_percentage": {"", 0, 0, func(d *Daemon, _ []string) (string, error) {
		return d.percentage(d.defaults), nil
	}},
	"set_default_active_thread_percentage": {"PERCENTAGE", 1, 1, func(d *Daemon, args []string) (_ string, err error) {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		err = d.defaults.setPercentage(args[0])
		return d.percentage(d.defaults), err
	}},
	"get_active_thread_percentage": {"PID", 1, 1, onServer(func(s *serverProcess, d *Daemon, _ []string) (string, error) {
		return d.percentage(s.limits[""]), nil
	})},
	"set_active_thread_percentage": {"PID PERCENTAGE", 2, 2, onServer(func(s *serverProcess, d *Daemon, args []string) (string, error) {
		err := s.change("", func(l *limits) error { return l.setPercentage(args[0]) })
		return d.percentage(s.limits[""]), err
	})},
	"get_default_device_pinned_mem_limit": {"DEVICE", 1, 1, func(d *Daemon, args []string) (string, error) {
		return d.defaults.memory(args[0]), nil
	}},
	"set_default_device_pinned_mem_limit": {"DEVICE VALUE", 2, 2, func(d *Daemon, args []string) (string, error) {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		return "", d.defaults.setMemory(args[0], args[1])
	}},
	"get_device_pinned_mem_limit": {"PID DEVICE", 2, 2, onServer(func(s *serverProcess, _ *Daemon, args []string) (string, error) {
		return s.limits[""].memory(args[0]), nil
	})},
	"set_device_pinned_mem_limit": {"PID DEVICE VALUE", 3, 3, onServer(func(s *serverProcess, _ *Daemon, args []string) (string, error) {
		return "", s.change("", func(l *limits) error { return l.setMemory(args[0], args[1]) })
	})},
	"get_default_client_priority": {"", 0, 0, func(d *Daemon, _ []string) (string, error) {
		return fmt.Sprintln(d.priority), nil
	}},
	"set_default_client_priority": {"PRIORITY", 0, 1, func(d *Daemon, args []string) (string, error) {
		priority := strings.Join(args, "")
		if priority != "0" && priority != "1" && priority != "" {
			return "", fmt.Errorf("Invalid priority %s: 0 (normal) or 1 (below normal)", priority)
		}
		d.priority, _ = strconv.Atoi(priority)
		return "", nil
	}},
}

// onServer is a command whose first argument is a server's process ID; do gets the others.
func onServer(do func(s *serverProcess, d *Daemon, args []string) (string, error)) func(*Daemon, []string) (string, error) {
	return func(d *Daemon, args []string) (string, error) {
		for _, s := range d.all() {
			if strconv.Itoa(s.process.Pid) == args[0] {
				return do(s, d, args[1:])
			}
		}
		return "", fmt.Errorf("Server %s not found", args[0])
	}
}

func (d *Daemon) serverList(_ []string) (string, error) {
	output := ""
	for _, s := range d.all() {
		output += fmt.Sprintln(s.process.Pid)
	}
	return output, nil
}

// startServer2 starts the server; the daemon's mutex is held.
func (d *Daemon) startServer2(uid int) (*serverProcess, error) {
	s := &serverProcess{uid: uid, devices: d.Devices, limits: map[string]limits{"": d.defaults}}
	if err := d.start(s); err != nil {
		return nil, err
	}
	d.servers = append(d.servers, s)
	return s, nil
}

func (d *Daemon) startCommand(args []string) (string, error) {
	uid, err := strconv.Atoi(args[1])
	if args[0] != "-uid" || err != nil {
		return "", errors.New("Usage: start_server -uid UID")
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if len(d.servers) > 0 {
		return "", fmt.Errorf("Server %d is running already", d.servers[0].process.Pid)
	}
	_, err = d.startServer2(uid)
	return "", err
}

// status is ACTIVE or FAULT. INITIALIZING is over before anybody can ask.
func (s *serverProcess) status() (string, error) {
	r, err := s.report()
	if r.Fault {
		return "FAULT\n", err
	}
	return "ACTIVE\n", err
}

// shutdown lets it end with its last client, or at once.
func (s *serverProcess) shutdown(d *Daemon, args []string) (string, error) {
	switch strings.Join(args, " ") {
	case "":
		d.mutex.Lock()
		s.ending = true
		d.mutex.Unlock()
		s.drain()
	case "-f":
		s.kill()
		d.forget(s)
	default:
		return "", errors.New("Usage: shutdown_server PID [-f]")
	}
	return "", nil
}

// quit2 waits for servers and their clients to end, with -t only so many seconds.
func (d *Daemon) quit2(args []string) error {
	var timeout <-chan time.Time
	if len(args) > 0 {
		seconds, err := strconv.Atoi(args[len(args)-1])
		if len(args) != 2 || args[0] != "-t" || err != nil || seconds < 0 {
			return errors.New("Usage: quit [-t TIMEOUT]")
		}
		timeout = time.After(time.Duration(seconds) * time.Second)
	}
	d.stopClients()
	for _, s := range d.all() {
		s.drain()
	}
	for _, s := range d.all() {
		select {
		case <-s.exited:
		case <-timeout:
			d.killAll()
			return nil
		}
	}
	return nil
}
