package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

func (a *app) xid() *cobra.Command {
	return &cobra.Command{
		Use: "xid GPU NUMBER", Short: "Report an Xid of a GPU",
		Long: "Report an Xid of a GPU. After a critical one the GPU asks to be reset; 13, 31, 43, 45 and 68\n" +
			"are applications' own errors and leave it well.",
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			number, err := strconv.ParseUint(args[1], 10, 32)
			if err != nil || number == 0 {
				return fmt.Errorf("NUMBER %q is not an Xid: give a positive number such as 48", args[1])
			}
			return a.do(func(m *simulator.Machine) error { return m.RaiseXid(args[0], number) })
		},
	}
}

func (a *app) slow() *cobra.Command {
	return &cobra.Command{
		Use: "slow DEVICE CALL DURATION", Short: "Make an NVML call on a GPU, or a call on a NIC, take longer",
		Long: "Make a call on a GPU or a NIC take longer by DURATION (as usual with 0). CALL is \"*\" for all of\n" +
			"them, or a function's name in nvml.h without its version; NICs' calls, which are simulated within\n" +
			"tests alone, are " + strings.Join(simulator.CallNICs, ", ") + ".",
		Example: "  dovetail-sim slow --root /run/machine 0 nvmlDeviceGetName 2s",
		Args:    cobra.ExactArgs(3),
		RunE: func(_ *cobra.Command, args []string) error {
			by, err := time.ParseDuration(args[2])
			if err != nil {
				return fmt.Errorf("DURATION %q: write one such as 150ms or 2s, or 0", args[2])
			}
			return a.do(func(m *simulator.Machine) error { return m.Slow(args[0], args[1], by) })
		},
	}
}

func (a *app) fail() *cobra.Command {
	failure := simulator.Failure{Times: 1, Error: simulator.FailureUnknown}
	cmd := &cobra.Command{
		Use: "fail DEVICE CALL", Short: "Make the next calls of a name fail on a GPU or a NIC",
		Long: "Make the next calls of a name fail on a GPU or a NIC. CALL is as for slow.\n" +
			" A call that fails changes nothing, but with \"lost\" the device falls off the bus.",
		Example: "  dovetail-sim fail --root /run/machine 0 nvmlGpuInstanceCreateComputeInstance --times 2 --error in-use",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.do(func(m *simulator.Machine) error { return m.Fail(args[0], args[1], failure) })
		},
	}
	cmd.Flags().IntVar(&failure.Times, "times", 1, "how many calls fail; 0 for none any more")
	cmd.Flags().StringVar((*string)(&failure.Error), "error", string(failure.Error),
		"the `error`: unknown, in-use, insufficient-resources, lost or no-permission")
	return cmd
}

func (a *app) driver() *cobra.Command {
	cmd := &cobra.Command{Use: "driver", Short: "Load the NVIDIA driver, or take it away"}
	for _, c := range []struct {
		use, short string
		to         simulator.Driver
	}{
		{"load", "Install and load the driver", simulator.DriverLoaded},
		{"unload", "Unload the kernel module: NVML finds no driver, and there are no device nodes", simulator.DriverUnloaded},
		{"uninstall", "Take the libraries away, too: a fresh node", simulator.DriverMissing},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: c.use, Short: c.short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return a.change(cmd, func(m *simulator.Machine) error { return m.SetDriver(c.to) })
			},
		})
	}
	return cmd
}

func (a *app) reboot() *cobra.Command {
	return &cobra.Command{
		Use: "reboot", Short: "Give the machine a new boot ID and its GPUs their first state", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.change(cmd, (*simulator.Machine).Reboot) },
	}
}
