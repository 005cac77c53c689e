package spawn

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Daemon is a program that is started, watched and ended, but never restarted on
// its own: a test wants to see that it died.
type Daemon struct {
	Name  string
	Group string
	Argv  []string
	Env   []string // nil: as the caller's
	Log   string

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts the daemon, appending to its log.
func (d *Daemon) Start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running() {
		return fmt.Errorf("%s runs already", d.Name)
	}
	log, err := os.OpenFile(d.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := Command(d.Group, Free, d.Argv...)
	cmd.Env, cmd.Stdout, cmd.Stderr = d.Env, log, log
	cmd.SysProcAttr.Setsid = true
	if err := Start(cmd); err != nil {
		return fmt.Errorf("starting %s: %w", d.Name, err)
	}
	done := make(chan struct{})
	d.cmd, d.done = cmd, done
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	return nil
}

// Kill ends the daemon at once and waits until it is gone.
func (d *Daemon) Kill() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.running() {
		return fmt.Errorf("%s does not run", d.Name)
	}
	if err := d.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing %s: %w", d.Name, err)
	}
	<-d.done
	return nil
}

// Running says whether the daemon runs.
func (d *Daemon) Running() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running()
}

// Exited is closed when the daemon, as last started, has ended.
func (d *Daemon) Exited() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

// State describes the daemon in a few words.
func (d *Daemon) State() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.cmd == nil:
		return "not started"
	case d.running():
		return "running"
	}
	return "ended: " + d.cmd.ProcessState.String()
}

func (d *Daemon) running() bool {
	if d.done == nil {
		return false
	}
	select {
	case <-d.done:
		return false
	default:
		return true
	}
}
