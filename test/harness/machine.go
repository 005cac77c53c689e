package harness

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// MachineRoot is where a node's simulated machine lies; the chart's
// ci/simulated-values.yaml names it, too.
const MachineRoot = "/var/lib/dovetail-sim/machine"

// CreateMachine makes the simulated machine of that description on a node, with its
// network interfaces.
func (c *Cluster) CreateMachine(ctx context.Context, node, description string) error {
	if err := c.need("bin/dovetail-sim", "bin/dovetail-sim-tools", "bin/libnvidia-ml.so.1"); err != nil {
		return err
	}
	_, err := c.Sim(ctx, node, "create", description, "--name", description+"-"+node, "--library", c.built("bin/libnvidia-ml.so.1"),
		"--tools", c.built("bin/dovetail-sim-tools"))
	if err != nil {
		return err
	}
	return c.KeepNICs(ctx, node)
}

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
