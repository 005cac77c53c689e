package mps

import (
	"fmt"
	"strings"
)

// defaultNamespace is there in every server.
const defaultNamespace = "default"

// command3 is a command of protocol 3.
func (d *Daemon) command3(words []string) (output string, end bool, err error) {
	if len(words) == 1 && words[0] == "quit" { // of the option -q: it waits for nobody (assumed)
		d.stopClients()
		d.killAll()
		return "", true, nil
	}
	a, err := parseArguments(words)
	if err != nil {
		return "", false, err
	}
	do, ok := command3(a.name)
	if !ok {
		return "", false, fmt.Errorf("%s: unknown, or not simulated", a.name)
	}
	d.commanding.Lock()
	defer d.commanding.Unlock()
	output, err = do(d, a)
	return output, false, err
}

func command3(name string) (do func(*Daemon, arguments) (string, error), ok bool) {
	do, ok = map[string]func(*Daemon, arguments) (string, error){
		"server create": (*Daemon).createServer, "server delete": (*Daemon).deleteServer, "server set": (*Daemon).setServer,
		"server list": (*Daemon).listServers, "server get": (*Daemon).getServer,
		"namespace create": (*Daemon).createNamespace, "namespace delete": (*Daemon).deleteNamespace,
		"namespace set": (*Daemon).setNamespace, "namespace list": (*Daemon).listNamespaces, "namespace get": (*Daemon).getNamespace,
		"client list": (*Daemon).listClients, "client terminate": (*Daemon).terminateClient,
	}[name]
	return do, ok
}

func checkName(name string) error {
	if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return fmt.Errorf("name %q: use up to 64 lowercase letters, digits and underscores", name)
	}
	return nil
}
