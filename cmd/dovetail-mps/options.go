package main

import (
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"github.com/dovetail-dra/dovetail/pkg/hardware/mps"
)

// options are those of run and serve.
type options struct {
	runDir     string
	driverRoot string
	procRoot   string
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	addRunDir(flags, &o.runDir)
	flags.StringVar(&o.driverRoot, "driver-root", "/", "root of the NVIDIA driver's installation, with its programs, libraries and /dev")
	flags.StringVar(&o.procRoot, "proc-root", "/proc", "proc, which says when the node was booted")
}

func addRunDir(flags *pflag.FlagSet, to *string) {
	flags.StringVar(to, "run-dir", mps.Dir, "directory of the socket and of what clients and control daemons share; it has the same path on the host")
}

// flags are the command line's, for another process.
func (o *options) flags() []string {
	return []string{"--run-dir=" + o.runDir, "--driver-root=" + o.driverRoot, "--proc-root=" + o.procRoot}
}

func newLog() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }
