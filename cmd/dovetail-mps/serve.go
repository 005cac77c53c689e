package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/pkg/command"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/host"
	port "github.com/dovetail-dra/dovetail/pkg/hardware/mps"
	"github.com/dovetail-dra/dovetail/pkg/hardware/nvml"
	"github.com/dovetail-dra/dovetail/pkg/lock"
	"github.com/dovetail-dra/dovetail/pkg/mps"
	"github.com/dovetail-dra/dovetail/pkg/mps/keeper"
	"github.com/dovetail-dra/dovetail/pkg/mps/server"
)

func newRun() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Keep serve running, and what it has started when it is killed",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return keeper.Run(cmd.Context(), newLog(), append([]string{self, "serve"}, o.flags()...))
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func newServe() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the node agent; control daemons outlive this process",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.serve(cmd.Context()) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *options) serve(ctx context.Context) error {
	// Memory on a GPU node is better spent otherwise.
	debug.SetGCPercent(25)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.runDir, 0o711); err != nil {
		return fmt.Errorf("--run-dir: %w", err)
	}
	// The one before may be about to end.
	unlock, err := lock.File(filepath.Join(o.runDir, "lock")).Lock(ctx, "serve")
	if err != nil {
		return fmt.Errorf("--run-dir: %w", err)
	}
	defer unlock()
	bootID, err := host.New(nil, "", o.procRoot).BootID()
	if err != nil {
		return fmt.Errorf("--proc-root: %w", err)
	}
	log := newLog()
	manager, err := mps.New(mps.Options{
		Dir: o.runDir, DriverRoot: o.driverRoot, BootID: bootID, Launcher: []string{self, "launch"}, Describe: o.describe, Log: log,
	})
	if manager == nil {
		return err
	}
	defer manager.Close()
	if err != nil { // of some sets; the others are served
		log.Error("Not all of an earlier process could be found again or removed", "err", err)
	}
	socket := port.Socket(o.runDir)
	listener, err := server.Listen(socket)
	if err != nil {
		return fmt.Errorf("--run-dir: %w", err)
	}
	log.Info("Serving", "version", command.Version, "socket", socket)
	return server.New(manager).Serve(ctx, listener)
}

// describe opens NVML for this one look, which is rare: it would take more memory than
// all the rest, and hold the driver.
func (o *options) describe(ctx context.Context) (hardware.Description, error) {
	gpus := nvml.New(nvml.Options{DriverRoot: o.driverRoot})
	defer func() { _ = gpus.Close() }()
	return gpus.Describe(ctx)
}
