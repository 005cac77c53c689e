package cli

import (
	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/control"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/controlplane"
)

func pauseCommand(o *options) *cobra.Command {
	return o.controlPlane(controlplane.OpPause, "Kill the API server (SIGKILL), and the scheduler and controllers with it, which end without one; resume-apiserver starts them again")
}

func resumeCommand(o *options) *cobra.Command {
	return o.controlPlane(controlplane.OpResume, "Start the API server again, wait until it is ready, and start the scheduler and controllers")
}

func (o *options) controlPlane(op, short string) *cobra.Command {
	return &cobra.Command{
		Use:   op,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, _, err := o.running()
			if err != nil {
				return err
			}
			_, err = control.Call(c.Control(), control.Request{Op: op})
			return err
		},
	}
}
