package launch

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/initproc"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/spawn"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

// initProcess is a cluster's init as the launcher that started it sees it.
type initProcess struct {
	progress *os.File // what init says
	leash    *os.File // init ends if this closes without a byte
}

// startInit starts the cluster's init in PID, mount, network and IPC namespaces of
// its own, in a session of its own, so that Ctrl-C reaches the launcher alone.
func startInit(c *state.Cluster) (*initProcess, error) {
	log, err := os.Create(c.Log("init"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	progressR, progressW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	leashR, leashW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(spawn.Self, initproc.Command, "--name", c.Name, "--state-dir", c.Dir)
	cmd.Args[0] = "dovetail-cluster"
	cmd.Dir, cmd.Env = "/", environment(c)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{progressW, leashR} // initproc.ProgressFD, LeashFD
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC,
	}
	err = cmd.Start()
	progressW.Close()
	leashR.Close()
	p := &initProcess{progressR, leashW}
	if err != nil {
		p.letGo()
		return nil, fmt.Errorf("starting the cluster's init: %w (root is needed)", err)
	}
	go func() { _ = cmd.Wait() }() // reap it, if it ends before the launcher
	run, err := state.NewRun(cmd.Process.Pid)
	if err == nil {
		err = state.WriteJSON(c.RunFile(), run)
	}
	if err != nil {
		p.letGo()
		return nil, err
	}
	return p, nil
}

// environment is what daemons get: nothing of the user's, who may have proxies and
// kubeconfigs there.
func environment(c *state.Cluster) []string {
	return []string{"PATH=" + c.Bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "LANG=C.UTF-8"}
}

// detach leaves the cluster running.
func (p *initProcess) detach() error {
	_, err := p.leash.Write([]byte{1})
	return err
}

// letGo closes the files; before detach, that ends the cluster.
func (p *initProcess) letGo() {
	p.progress.Close()
	p.leash.Close()
}
