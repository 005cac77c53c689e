package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/nvml"
)

// memoryLimit is of one GPU. A container with shares of several GPUs, or several of one,
// has as many hooks, which the runtime runs one after the other.
type memoryLimit struct {
	roots
	driverRoot string
	gpu        string
	share      string
	bytes      uint64
}

func newMemoryLimit(r roots) *cobra.Command {
	o := memoryLimit{roots: r}
	cmd := &cobra.Command{
		Use:   "memory-limit",
		Short: "Have the driver limit what the container allocates of a GPU's memory",
		Long: "Has the driver limit what all of the container's processes together allocate of a GPU's memory.\n" +
			"Where the container has a limit already, by another share of the GPU, this one is added.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.set(cmd.Context(), cmd.InOrStdin()); err != nil {
				return fmt.Errorf("share %s: limit the container to %d bytes of GPU %s's memory, without which it does not start: %w", o.share, o.bytes, o.gpu, err)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.driverRoot, "driver-root", "/", "root of the NVIDIA driver's installation, with its libraries")
	flags.StringVar(&o.gpu, "gpu", "", "UUID of the GPU")
	flags.StringVar(&o.share, "share", "", "name of the share, for messages")
	flags.Uint64Var(&o.bytes, "bytes", 0, "the limit, in bytes")
	return cmd
}

func (o *memoryLimit) set(ctx context.Context, state io.Reader) error {
	switch {
	case o.gpu == "":
		return failure.New(failure.Invalid, "--gpu: is empty: give a GPU's UUID")
	case o.bytes == 0:
		return failure.New(failure.Invalid, "--bytes: is 0: give the limit in bytes")
	}
	container, err := readState(state)
	if err != nil {
		return err
	}
	cgroup, err := o.cgroupOf(container.Pid)
	if err != nil {
		return err
	}
	gpus := nvml.New(nvml.Options{DriverRoot: o.driverRoot})
	defer func() { _ = gpus.Close() }()
	_, err = gpus.AddMemoryLimit(ctx, o.gpu, cgroup, o.bytes)
	return err
}
