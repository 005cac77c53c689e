package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// MachineRoot is where a node's simulated machine lies; the chart's
// ci/simulated-values.yaml names it, too.
const MachineRoot = "/var/lib/dovetail-sim/machine"

// CreateMachine makes the simulated machine of that description on a node, with its
// network interfaces.
func (c *Cluster) CreateMachine(ctx context.Context, node, description string) error {
	create, err := c.createCommand(node, description)
	if err != nil {
		return err
	}
	if _, err := c.Exec(ctx, node, create...); err != nil {
		return err
	}
	return c.KeepNICs(ctx, node)
}

// ExchangeMachine makes another machine of a node, as if its cards had been exchanged while
// it was off: it is rebooted, and Ready again when this returns.
func (c *Cluster) ExchangeMachine(ctx context.Context, node, description string) error {
	create, err := c.createCommand(node, description)
	if err != nil {
		return err
	}
	_, err = c.Run(ctx, "reboot", node, "--wait", "--", "sh", "-ec", strings.Join(create, " ")+"\n"+c.keepNICs())
	return err
}

// createCommand is how a node makes its machine.
func (c *Cluster) createCommand(node, description string) ([]string, error) {
	if err := c.need("bin/dovetail-sim", "bin/dovetail-sim-tools", "bin/libnvidia-ml.so.1"); err != nil {
		return nil, err
	}
	return c.SimCommand("create", description, "--name", machineName(node, description), "--library", c.built("bin/libnvidia-ml.so.1"),
		"--tools", c.built("bin/dovetail-sim-tools")), nil
}

// machineName of the machine of that description on a node: no two nodes have the same UUIDs.
func machineName(node, description string) string { return description + "-" + node }

// Sim runs dovetail-sim on a node's machine.
func (c *Cluster) Sim(ctx context.Context, node string, args ...string) (string, error) {
	return c.Exec(ctx, node, c.SimCommand(args...)...)
}

// SimCommand is how a node runs dovetail-sim on its machine.
func (c *Cluster) SimCommand(args ...string) []string {
	return append([]string{c.built("bin/dovetail-sim"), "--root", MachineRoot}, args...)
}

// stateFile is the machine's state, from the node's root.
const stateFile = MachineRoot + "/" + simulator.StateDir + "/state.json"

// HasMachine says whether a node has a machine, and whether it is of that description.
func (c *Cluster) HasMachine(ctx context.Context, node, description string) (some, that bool, err error) {
	content, err := c.Shell(ctx, node, "test ! -e "+stateFile+" || echo there")
	if err != nil || content == "" {
		return false, false, err
	}
	state, err := c.Machine(ctx, node)
	if err != nil {
		return true, false, err
	}
	return true, state.Spec.Name == machineName(node, description), nil
}

// Machine reads the state of a node's simulated machine.
func (c *Cluster) Machine(ctx context.Context, node string) (*simulator.State, error) {
	content, err := c.Exec(ctx, node, "cat", stateFile)
	if err != nil {
		return nil, err
	}
	state := &simulator.State{}
	if err := json.Unmarshal([]byte(content), state); err != nil {
		return nil, fmt.Errorf("state of the simulated machine on %s: %w", node, err)
	}
	return state, nil
}

// WaitMachine waits until a node publishes devices of the machine that it has, and none of
// one that it had before. It returns how many GPUs and NICs they are of.
func (c *Cluster) WaitMachine(ctx context.Context, node string) (gpus, nics int, err error) {
	state, err := c.Machine(ctx, node)
	if err != nil {
		return 0, 0, err
	}
	_, err = c.WaitSlices(ctx, node, "the devices of "+state.Spec.Name, func(slices []*resourceapi.ResourceSlice) bool {
		var foreign bool
		gpus, nics, foreign = origins(Devices(slices), state.Spec)
		return !foreign && (gpus > 0 || len(state.Spec.GPUs) == 0) && gpus+nics > 0
	})
	return gpus, nics, err
}

// origins counts the GPUs and NICs of a machine that devices are of, and says whether
// some are of another machine.
func origins(devices map[string]resourceapi.Device, spec simulator.Spec) (gpus, nics int, foreign bool) {
	own := map[string]bool{} // to be counted
	for _, gpu := range spec.GPUs {
		own[gpu.UUID] = true
	}
	for _, nic := range spec.NICs {
		own[nic.Address.String()] = true
	}
	for _, d := range devices {
		id, count := d.Attributes["physicalFunction"].StringValue, &nics
		if kind := d.Attributes["type"].StringValue; kind != nil && *kind == "monitor" { // each GPU has one
			id, count = d.Attributes["uuid"].StringValue, &gpus
		}
		if id == nil {
			continue
		}
		first, known := own[*id]
		switch {
		case !known:
			foreign = true
		case first:
			*count++
			own[*id] = false
		}
	}
	return gpus, nics, foreign
}
