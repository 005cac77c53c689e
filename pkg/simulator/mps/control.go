package mps

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

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
