// Command dovetail-sim-tools is the programs of a simulated machine's driver in one:
// nvidia-smi, nvidia-cuda-mps-control and nvidia-cuda-mps-server; and cuda-client,
// which behaves as a program that uses CUDA. It goes by the name that it is called
// by, or by its first argument. Build it with CGO_ENABLED=0: it runs in roots that
// have nothing but the driver, and in any container.
//
// The machine is the one that the program lies in, or DOVETAIL_SIM_ROOT.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/cuda"
	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
	"github.com/dovetail-dra/dovetail/pkg/simulator/smi"
)

func main() {
	self := place()
	machine, err := find(self)
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	if !known(name) && len(args) > 0 {
		name, args = args[0], args[1:]
	}
	switch name {
	case smi.Name:
		os.Exit(smi.Run(machine, args, os.Stdout, os.Stderr))
	case cuda.Name:
		os.Exit(cuda.Run(machine, args))
	case mps.ControlName, mps.ServerName:
		if err == nil && name == mps.ControlName {
			os.Exit(mps.Control(machine, self, args))
		}
		if err == nil {
			err = mps.Serve(machine, os.Stdin)
		}
	default:
		err = fmt.Errorf("unknown program %q: call it %s, %s, or %s", name, smi.Name, mps.ControlName, cuda.Name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

func known(name string) bool {
	return name == smi.Name || name == cuda.Name || name == mps.ControlName || name == mps.ServerName
}

// place is where this program lies. A root without proc does not say; then it is
// what the program was called by.
func place() string {
	if path, err := os.Executable(); err == nil {
		return path
	}
	if filepath.IsAbs(os.Args[0]) {
		return os.Args[0]
	}
	return filepath.Join("/usr/bin", filepath.Base(os.Args[0]))
}

func find(self string) (*simulator.Machine, error) {
	if root := os.Getenv(simulator.RootVariable); root != "" {
		return simulator.Open(root)
	}
	return simulator.Find(self)
}
