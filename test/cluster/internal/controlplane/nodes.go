package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/control"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/network"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/node"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/poll"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/spawn"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

// bootNode starts a node's process in namespaces of its own, connects it, and
// starts its containerd.
func (s *Supervisor) bootNode(name string) error {
	i, err := s.cluster.Index(name)
	if err != nil {
		return err
	}
	cmd, plugIn, err := nodeCommand(s.cluster, name)
	if err != nil {
		return err
	}
	err = cmd.Start()
	cmd.Stdin.(*os.File).Close()
	if err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	exited := make(chan struct{})
	go func() {
		err := cmd.Wait()
		close(exited)
		s.died <- fmt.Errorf("the process of %s ended (%w); %s", name, endedBy(err), logHint(name))
	}()
	if err := network.Cable(i, cmd.Process.Pid); err != nil {
		return err
	}
	plugIn.Close()
	if err := awaitSocket(s.cluster.NodeControl(name), exited); err != nil {
		return fmt.Errorf("%s did not come up: %w; %s", name, err, logHint(name))
	}
	_, err = control.Call(s.cluster.NodeControl(name), control.Request{Op: node.OpBoot})
	return err
}

// endedBy is how a process ended that should not have.
func endedBy(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// nodeCommand prepares a node's process. It waits until plugIn is closed.
func nodeCommand(c *state.Cluster, name string) (cmd *exec.Cmd, plugIn *os.File, err error) {
	log, err := os.Create(c.Log(name))
	if err != nil {
		return nil, nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd = exec.Command(spawn.Self, node.Command, "--name", c.Name, "--state-dir", c.Dir, name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	return cmd, w, nil
}

// awaitSocket waits until something listens.
func awaitSocket(path string, exited <-chan struct{}) error {
	return poll.For(time.Minute, 10*time.Millisecond, func() error {
		select {
		case <-exited:
			return poll.Stop(errors.New("its process ended"))
		default:
		}
		_, err := control.PID(path)
		return err
	})
}

func (s *Supervisor) startKubelet(name string) error {
	_, err := control.Call(s.cluster.NodeControl(name), control.Request{Op: node.OpStartKubelet})
	return err
}

// nodeReady returns nil if the node is Ready and its kubelet spoke after since:
// for 40 seconds a node whose kubelet is dead still looks Ready.
func (s *Supervisor) nodeReady(ctx context.Context, name string, since time.Time) error {
	nodes, err := s.nodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n.Name != name {
			continue
		}
		if !n.Ready {
			return fmt.Errorf("%s is not Ready", name)
		}
		if since.IsZero() {
			return nil
		}
		renewed, err := s.api.Renewed(ctx, name)
		if err != nil {
			return err
		}
		if renewed.Before(since) {
			return fmt.Errorf("kubelet of %s has not renewed its lease since", name)
		}
		return s.sameBoot(n)
	}
	return fmt.Errorf("%s has not registered", name)
}

// sameBoot returns nil if the API server knows of the node's last reboot.
func (s *Supervisor) sameBoot(n control.Node) error {
	b, err := os.ReadFile(s.cluster.NodePath(n.Name, "/proc/sys/kernel/random/boot_id"))
	if err != nil {
		return err
	}
	if string(b) != n.BootID+"\n" {
		return fmt.Errorf("%s still shows its old boot id", n.Name)
	}
	return nil
}

func (s *Supervisor) nodes(ctx context.Context) ([]control.Node, error) {
	list, err := s.api.Nodes(ctx)
	var out []control.Node
	for _, n := range list {
		out = append(out, control.Node{Name: n.Metadata.Name, Ready: n.Ready(), BootID: n.Status.NodeInfo.BootID})
	}
	return out, err
}
