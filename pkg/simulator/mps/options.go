package mps

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// options of nvidia-cuda-mps-control.
type options struct {
	background, foreground, quit, version bool
	multiUser, legacyMultiUser            bool // by protocol 3's name, and by protocol 2's
	protocol                              int
	command                               []string
}

func parseOptions(args []string) (o options, err error) {
	o.protocol = 2
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		value, inline := "", false
		if strings.HasPrefix(arg, "--protocol=") {
			arg, value, inline = "-p", strings.TrimPrefix(arg, "--protocol="), true
		}
		switch arg {
		case "-d", "--daemon":
			o.background = true
		case "-f", "--foreground":
			o.foreground = true
		case "-q", "--quit":
			o.quit = true
		case "-v", "--version":
			o.version = true
		case "-m", "--multiuser":
			o.multiUser = true
		case "-multiuser-server":
			o.legacyMultiUser = true
		case "-p", "--protocol":
			if !inline && len(args) > 0 {
				value, args = args[0], args[1:]
			}
			if o.protocol, err = strconv.Atoi(value); err != nil || o.protocol != 2 && o.protocol != 3 {
				return o, fmt.Errorf("protocol %q: give 2 or 3", value)
			}
		default:
			if strings.HasPrefix(arg, "-") {
				return o, fmt.Errorf("unknown option, or one that is not simulated: %s", arg)
			}
			o.command = append([]string{arg}, args...)
			args = nil
		}
	}
	if text := os.Getenv(protocolVariable); text == "2" || text == "3" {
		o.protocol, _ = strconv.Atoi(text)
	}
	return o, nil
}

// known says whether the control daemon of this driver has the options.
func (o options) known(machine *simulator.Machine, args []string) error {
	state, err := machine.State()
	if err != nil {
		return err
	}
	if state.MPSProtocol() < 3 && (o.protocol == 3 || o.quit || o.multiUser || len(o.command) > 0) ||
		o.legacyMultiUser && !state.MultiUserOption() {
		return fmt.Errorf("unknown option in %q (driver %s)", args, state.Spec.Driver.Version)
	}
	return nil
}
