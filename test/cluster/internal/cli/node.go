package cli

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/control"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/controlplane"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/node"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

// kubeletCommands start and end a node's kubelet.
func kubeletCommands(o *options) []*cobra.Command {
	command := func(op, short string, canWait bool) *cobra.Command {
		var wait bool
		cmd := &cobra.Command{
			Use:   op + " NODE",
			Short: short,
			Args:  cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				c, err := o.withNode(args[0])
				if err != nil {
					return err
				}
				begin := time.Now()
				if _, err := control.Call(c.NodeControl(args[0]), control.Request{Op: op}); err != nil {
					return err
				}
				if wait {
					return waitReady(c, args[0], begin)
				}
				return nil
			},
		}
		if canWait {
			cmd.Flags().BoolVar(&wait, "wait", false, "wait until the node is Ready again")
		}
		return cmd
	}
	return []*cobra.Command{
		command(node.OpKillKubelet, "Kill a node's kubelet (SIGKILL) and start it again", true),
		command(node.OpStopKubelet, "Kill a node's kubelet (SIGKILL)", false),
		command(node.OpStartKubelet, "Start a node's kubelet", true),
	}
}

func (o *options) withNode(name string) (*state.Cluster, error) {
	c, _, err := o.running()
	if err != nil {
		return nil, err
	}
	_, err = c.Index(name)
	return c, err
}

func waitReady(c *state.Cluster, name string, since time.Time) error {
	fmt.Fprintf(os.Stderr, "waiting for %s to be Ready\n", name)
	_, err := control.Call(c.Control(), control.Request{Op: controlplane.OpNodeReady, Node: name, Since: since})
	return err
}

func rebootCommand(o *options) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "reboot NODE [-- COMMAND…]",
		Short: "Reboot a node, as if its plug was pulled",
		Long: `Reboot a node, as if its plug was pulled: all its processes end at once, their
mounts and all in /run (CDI specs, too) are gone, the disk stays, the boot id is a
new one. Then containerd and kubelet start. COMMAND runs on the node in between;
its exit code is the launcher's, and the node is started in any case.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := o.withNode(args[0])
			if err != nil {
				return err
			}
			begin := time.Now()
			commandErr, err := reboot(c, args[0], args[1:])
			if err == nil && wait {
				err = waitReady(c, args[0], begin)
			}
			return firstOf(err, commandErr)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the node is Ready again")
	cmd.Flags().SetInterspersed(true)
	return cmd
}

func reboot(c *state.Cluster, name string, between []string) (commandErr, err error) {
	if _, err := control.Call(c.NodeControl(name), control.Request{Op: node.OpCrash}); err != nil {
		return nil, err
	}
	if len(between) > 0 {
		done := make(chan error)
		go func() { done <- onNode(c, name, between, os.Stdin, os.Stdout, os.Stderr) }()
		commandErr = <-done
	}
	for _, op := range []string{node.OpBoot, node.OpStartKubelet} {
		if _, err := control.Call(c.NodeControl(name), control.Request{Op: op}); err != nil {
			return commandErr, err
		}
	}
	return commandErr, nil
}

func loadCommand(o *options) *cobra.Command {
	var only string
	cmd := &cobra.Command{
		Use:   "load IMAGE.tar…",
		Short: "Load image archives (docker save) on all nodes",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, _, err := o.running()
			if err != nil {
				return err
			}
			nodes := c.Nodes
			if only != "" {
				if _, err := c.Index(only); err != nil {
					return err
				}
				nodes = []string{only}
			}
			for _, tar := range args {
				begin := time.Now()
				if err := load(c, nodes, tar); err != nil {
					return fmt.Errorf("loading %s: %w", tar, err)
				}
				fmt.Fprintf(os.Stderr, "loaded %s on %v in %.1f s\n", tar, nodes, time.Since(begin).Seconds())
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&only, "node", "", "only on this node")
	return cmd
}

// load loads one archive on all nodes at once. They read it from standard input,
// since it may lie where nodes have something else.
func load(c *state.Cluster, nodes []string, tar string) error {
	errs := make([]error, len(nodes))
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() {
			f, err := os.Open(tar)
			if err != nil {
				errs[i] = err
				return
			}
			defer f.Close()
			errs[i] = importOn(c, n, f)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// importOn shows what the import says only if it fails.
func importOn(c *state.Cluster, name string, tar *os.File) error {
	said, err := os.CreateTemp("", "dovetail-load-")
	if err != nil {
		return err
	}
	defer said.Close()
	if err := os.Remove(said.Name()); err != nil {
		return err
	}
	if err := onNode(c, name, node.ImportCommand(c, "-"), tar, said, said); err != nil {
		text := make([]byte, 4000)
		n, _ := said.ReadAt(text, 0)
		return fmt.Errorf("on %s: %w\n%s", name, err, text[:n])
	}
	return nil
}
