package harness

import (
	"context"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// networkFile is the node's network namespace as a file, for agents, which look for the
// host's by process 1 elsewhere; the chart's ci/simulated-values.yaml names it, too.
const networkFile = "/var/lib/dovetail-sim/network"

// keepNICs is a script for a node: it names its network namespace, and starts `dovetail-sim nics run`, which keeps
// stand-ins for the machine's network interfaces in the node's network namespace, and
// waits until they are there. One that runs already goes on. It ends with the node's
// other processes, and its stand-ins with it.
func (c *Cluster) keepNICs() string {
	return `
mountpoint -q ` + networkFile + ` || { touch ` + networkFile + `; mount --bind /proc/self/ns/net ` + networkFile + `; }
dir=` + MachineRoot + `/` + simulator.StateDir + `
if flock -n $dir/standins.lock true; then
	rm -f $dir/nics-ready
	mkfifo $dir/nics-ready
	setsid ` + strings.Join(c.SimCommand("nics", "run"), " ") + ` >$dir/nics-ready 2>$dir/nics-log </dev/null &
	read -r line <$dir/nics-ready || { cat $dir/nics-log >&2; exit 1; }
fi`
}

// KeepNICs starts what keeps a machine's network interfaces on a node, which
// CreateMachine and RebootCommand do, too.
func (c *Cluster) KeepNICs(ctx context.Context, node string) error {
	_, err := c.Shell(ctx, node, c.keepNICs())
	return err
}

// RebootCommand is what a node runs in the middle of its reboot, so that its machine
// reboots, too.
func (c *Cluster) RebootCommand() []string {
	return []string{"sh", "-ec", strings.Join(c.SimCommand("reboot"), " ") + "\n" + c.keepNICs()}
}
