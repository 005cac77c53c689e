package mps

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// readyVariable is set for a daemon in the background: descriptor 3 takes what keeps
// it from starting.
const readyVariable = "DOVETAIL_SIM_MPS_READY"

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

// Control runs nvidia-cuda-mps-control and returns its exit status. self is the path
// of the program.
func Control(machine *simulator.Machine, self string, args []string) int {
	o, err := parseOptions(args)
	if err == nil {
		err = o.known(machine, args)
	}
	if err == nil {
		err = o.run(machine, self, args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
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

func (o options) run(machine *simulator.Machine, self string, args []string) error {
	pipe := pipeDir(o.protocol)
	switch {
	case o.version:
		state, err := machine.State()
		if err == nil {
			fmt.Println("CUDA MPS version", state.Spec.Driver.Version, "(simulated)")
		}
		return err
	case o.background:
		return inBackground(self, args)
	case o.foreground:
		d, err := o.daemon(machine, self, pipe)
		if err == nil {
			err = d.runAlone()
		}
		return reportStart(err)
	case o.quit:
		return tell(pipe, request{Command: []string{"quit"}})
	case len(o.command) > 0:
		return tell(pipe, request{Command: o.command})
	}
	return shell(pipe)
}

func pipeDir(protocol int) string {
	dir := "/tmp/nvidia-mps"
	if protocol == 3 && os.Getuid() == 0 {
		dir = "/run/nvidia-mps"
	}
	return cmp.Or(os.Getenv("CUDA_MPS_PIPE_DIRECTORY"), dir)
}

// daemon is the one that the options and the environment want.
func (o options) daemon(machine *simulator.Machine, self, pipe string) (*Daemon, error) {
	devices, err := visible(machine)
	if err != nil {
		return nil, err
	}
	if err := machine.CountRun(ControlName); err != nil {
		return nil, err
	}
	server := filepath.Join(filepath.Dir(self), ServerName)
	if !exists(server) {
		server = self
	}
	return &Daemon{
		Machine: machine, Server: server, PipeDir: pipe, LogDir: cmp.Or(os.Getenv("CUDA_MPS_LOG_DIRECTORY"), "/var/log/nvidia-mps"),
		Protocol: o.protocol, MultiUser: o.multiUser || o.legacyMultiUser, Devices: devices,
		Percentage: os.Getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), Memory: os.Getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"),
	}, nil
}

// visible are the devices of CUDA_VISIBLE_DEVICES, or all GPUs where it is not set.
// The daemon does not start without any, nor over one that cannot serve.
func visible(machine *simulator.Machine) ([]string, error) {
	state, err := machine.State()
	if err != nil {
		return nil, err
	}
	list, set := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	var names, devices []string
	if set {
		names = strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
	} else {
		for _, g := range state.Spec.GPUs {
			names = append(names, g.UUID)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no CUDA-capable device is detected: CUDA_VISIBLE_DEVICES is %q", list)
	}
	for _, name := range names {
		d, err := state.Device(name)
		if err != nil {
			return nil, err
		}
		if d.MPSClients(state) == 0 {
			return nil, fmt.Errorf("GPU %s is older than Volta: not simulated", d.UUID)
		}
		devices = append(devices, d.UUID)
		if len(d.Instance) > 0 {
			return devices[len(devices)-1:], nil // CUDA sees one MIG device, and no more
		}
	}
	return devices, nil
}

// runAlone runs the daemon until a signal ends it.
func (d *Daemon) runAlone() error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	signal.Ignore(syscall.SIGHUP)
	return d.Run(stop, func() {
		if d.Protocol == 3 {
			fmt.Println("To connect CUDA applications to this daemon, set CUDA_MPS_PIPE_DIRECTORY=" + d.PipeDir)
		}
		reportStart(nil) //nolint:errcheck // nil
	})
}

// reportStart tells whoever waits for a daemon in the background, once.
func reportStart(err error) error {
	if os.Getenv(readyVariable) == "" {
		return err
	}
	os.Unsetenv(readyVariable)
	to := os.NewFile(3, "ready")
	defer to.Close()
	if err != nil {
		fmt.Fprint(to, err)
	}
	return err
}

// inBackground starts the same again in a session of its own, and waits until it can
// be asked. What it has open is its log alone: whoever waits for the end of this
// program's output does not wait for the daemon's.
func inBackground(self string, args []string) error {
	logDir := cmp.Or(os.Getenv("CUDA_MPS_LOG_DIRECTORY"), "/var/log/nvidia-mps")
	if err := makeDir(logDir); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(logDir, "control.log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	again := []string{ControlName}
	for _, arg := range args {
		if arg == "-d" || arg == "--daemon" {
			arg = "-f"
		}
		again = append(again, arg)
	}
	_, err = os.StartProcess(self, again, &os.ProcAttr{
		Env: append(os.Environ(), readyVariable+"=1"), Files: []*os.File{log, log, log, to}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	to.Close()
	if err != nil {
		return err
	}
	problem, err := io.ReadAll(from)
	if err == nil && len(problem) > 0 {
		err = errors.New(string(problem))
	}
	return err
}

// shell gives the commands on standard input to the daemon, one a line. Their errors
// are output like any other, and no failure of the program (assumed).
func shell(pipe string) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		a, err := ask(pipe, request{Command: words, Stdin: true})
		if err != nil {
			return err
		}
		fmt.Print(a.Output)
		if a.Error != "" {
			fmt.Println(a.Error)
		}
	}
	return lines.Err()
}

// tell gives one command to the daemon.
func tell(pipe string, r request) error {
	a, err := ask(pipe, r)
	if err != nil {
		return err
	}
	fmt.Print(a.Output)
	if a.Error != "" {
		return errors.New(a.Error)
	}
	return nil
}

func ask(pipe string, r request) (a answer, err error) {
	conn, err := dial(pipe)
	if err != nil {
		return a, fmt.Errorf("Cannot find MPS control daemon process")
	}
	defer conn.Close()
	if err := send(conn, r); err != nil {
		return a, err
	}
	return a, json.NewDecoder(conn).Decode(&a)
}
