package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
)

// nic is of one PCI function. A container with several has as many hooks.
type nic struct {
	roots
	sysfsRoot, lock, order string
}

func newNIC(r roots) *cobra.Command {
	o := nic{roots: r}
	cmd := &cobra.Command{
		Use:   "nic",
		Short: "Move a NIC into the container's network namespace",
		Long: "Moves a NIC's network interfaces, and where RDMA devices belong to one network namespace its RDMA device,\n" +
			"into the container's, and sets name, MTU, addresses and routes. What an earlier container of the Pod has\n" +
			"moved stays. Nothing is moved for a Pod on the host's network.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.move(cmd.Context(), cmd.InOrStdin()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.order, "order", "", "which NIC, and what it shall be in the container, as JSON")
	flags.StringVar(&o.sysfsRoot, "sysfs-root", "/sys", "where the host's sysfs is mounted")
	flags.StringVar(&o.lock, "lock", "", "file that all lock who move NICs (default: "+rdma.LockName+" beside this program)")
	return cmd
}

func (o *nic) move(ctx context.Context, state io.Reader) error {
	order, err := parseOrder(o.order)
	if err != nil {
		return err
	}
	container, err := readState(state)
	if err != nil {
		return err
	}
	if o.lock == "" {
		program, err := os.Executable()
		if err != nil {
			return err
		}
		o.lock = filepath.Join(filepath.Dir(program), rdma.LockName)
	}
	nics := rdma.New(rdma.Options{SysfsRoot: o.sysfsRoot, ProcRoot: o.proc, HostNamespace: o.network, LockFile: o.lock})
	if err := nics.Move(ctx, nics.Namespace(container.Pid), order); err != nil {
		return fmt.Errorf("give the container NIC %s, without which it does not start: %w", order.Home.Address, err)
	}
	return nil
}

// parseOrder takes no order with a field that it does not know: it could not follow it.
func parseOrder(text string) (hardware.NICMove, error) {
	var order hardware.NICMove
	decoder := json.NewDecoder(bytes.NewBufferString(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&order); err != nil {
		return order, failure.New(failure.Invalid, "--order: %w: it must be as Dovetail of the same version writes it into CDI specifications", err)
	}
	return order, nil
}
