// Package node is the process that is a node: it sits in the node's namespaces,
// keeps them alive, and starts and ends containerd and kubelet in them.
package node

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/cgroup"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/config"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/control"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/mount"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/network"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/poll"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/spawn"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

// Command is the hidden subcommand.
const Command = "__node"

// The operations of a node.
const (
	OpBoot         = "boot" // start containerd; kubelet is started by itself
	OpCrash        = "crash"
	OpStartKubelet = "start-kubelet"
	OpStopKubelet  = "stop-kubelet"
	OpKillKubelet  = "restart-kubelet"
	OpState        = "state"
)

// Node is the node that this process is.
type Node struct {
	cluster    *state.Cluster
	name       string
	tree       cgroup.Tree
	base       []mount.Point // the mounts of a node that has just booted
	containerd *spawn.Daemon
	kubelet    *spawn.Daemon
	busy       sync.Mutex // held while the node changes
}

// Main becomes the node. It returns only on failure.
func Main(c *state.Cluster, name string) error {
	i, err := c.Index(name)
	if err != nil {
		return err
	}
	n := &Node{cluster: c, name: name}
	if n.tree, err = cgroup.Detect(cgroup.Root); err != nil {
		return err
	}
	if err := n.mounts(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil { // its end: the cable is in
		return err
	}
	if err := network.Node(i); err != nil {
		return err
	}
	if err := n.configure(); err != nil {
		return err
	}
	if n.base, err = mount.List(); err != nil {
		return err
	}
	l, err := control.Listen(c.NodeControl(name))
	if err != nil {
		return err
	}
	return control.Serve(l, n.handle)
}

// configure writes the node's files and describes its daemons.
func (n *Node) configure() error {
	if err := config.WriteNode(n.cluster, n.name); err != nil {
		return err
	}
	plugins := filepath.Join(n.cluster.Bin, "cni")
	if err := os.CopyFS("/opt/cni/bin", os.DirFS(plugins)); err != nil {
		return fmt.Errorf("copying CNI plugins: %w", err)
	}
	kubelet, err := config.Kubelet(n.cluster, n.name)
	if err != nil {
		return err
	}
	daemon := func(name string, argv []string) *spawn.Daemon {
		name = n.name + "-" + name
		return &spawn.Daemon{Name: name, Group: n.system(), Argv: argv, Log: n.cluster.Log(name)}
	}
	n.containerd = daemon("containerd", config.Containerd(n.cluster, n.name))
	n.kubelet = daemon("kubelet", kubelet)
	return nil
}

func (n *Node) system() string { return cgroup.System(n.cluster.NodeGroup(n.name)) }

func (n *Node) handle(req control.Request) (control.Answer, error) {
	var ans control.Answer
	if req.Op == OpState {
		for _, d := range []*spawn.Daemon{n.containerd, n.kubelet} {
			ans.Daemon = append(ans.Daemon, control.Daemon{Name: d.Name, State: d.State()})
		}
		return ans, nil
	}
	n.busy.Lock()
	defer n.busy.Unlock()
	switch req.Op {
	case OpBoot:
		return ans, n.boot()
	case OpCrash:
		return ans, n.crash()
	case OpStartKubelet:
		return ans, n.kubelet.Start()
	case OpStopKubelet:
		return ans, n.kubelet.Kill()
	case OpKillKubelet:
		if n.kubelet.Running() {
			if err := n.kubelet.Kill(); err != nil {
				return ans, err
			}
		}
		return ans, n.kubelet.Start()
	}
	return ans, fmt.Errorf("unknown operation %q of a node", req.Op)
}

// boot starts containerd and returns when it serves and has the built images.
func (n *Node) boot() error {
	if err := n.containerd.Start(); err != nil {
		return err
	}
	err := poll.For(time.Minute, 20*time.Millisecond, func() error {
		conn, err := net.Dial("unix", config.ContainerdSocket)
		if err == nil {
			return conn.Close()
		}
		if !n.containerd.Running() {
			return poll.Stop(errors.New("it ended"))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("containerd of %s is %s and does not serve: %w; its log is %[1]s-containerd.log", n.name, n.containerd.State(), err)
	}
	return n.images()
}

// images loads what `build` made. After a reboot they are there still.
func (n *Node) images() error {
	mark := filepath.Join(n.cluster.Node(n.name), "images-loaded")
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	tars, err := filepath.Glob(filepath.Join(n.cluster.Images, "*.tar"))
	if err != nil {
		return err
	}
	slices.Sort(tars)
	for _, tar := range tars {
		cmd := spawn.Command(n.system(), spawn.Free, ImportCommand(n.cluster, tar)...)
		if out, err := os.Create(n.cluster.Log(n.name + "-images")); err == nil {
			defer out.Close()
			cmd.Stdout, cmd.Stderr = out, out
		}
		if err := spawn.Run(cmd); err != nil {
			return fmt.Errorf("loading %s on %s: %w; its log is %[2]s-images.log", filepath.Base(tar), n.name, err)
		}
	}
	return os.WriteFile(mark, nil, 0o644)
}

// ImportCommand loads an image archive ("-": from standard input) on a node.
func ImportCommand(c *state.Cluster, archive string) []string {
	return []string{filepath.Join(c.Bin, "ctr"), "--namespace", "k8s.io", "images", "import", archive}
}
