package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dovetail-dra/dovetail/test/bench/kubelet"
)

// stopTimeout bounds how long a program may take to end before it is killed.
const stopTimeout = 25 * time.Second

// program is one that runs beside this one and ends with it.
type program struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended
	// driver is the program as the kubelet sees it, once it is registered.
	driver *kubelet.Plugin
}

// start runs a program; what it says goes to a file.
func start(log string, argv ...string) (*program, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &program{cmd: exec.Command(argv[0], argv[1:]...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait()
	}()
	return p, nil
}

func (p *program) pid() int { return p.cmd.Process.Pid }

// stop asks the program to end and waits until it has.
func (p *program) stop() error {
	var err error
	if p.driver != nil {
		err = p.driver.Close()
	}
	if e := p.cmd.Process.Signal(syscall.SIGTERM); e != nil && !errors.Is(e, os.ErrProcessDone) {
		err = errors.Join(err, e)
	}
	timer := time.AfterFunc(stopTimeout, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	<-p.exited
	return err
}

// register plays the kubelet that finds the program.
func (p *program) register(ctx context.Context, registryDir string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.exited:
			cancel(fmt.Errorf("%s has ended: see %v", filepath.Base(p.cmd.Path), p.cmd.Stdout.(*os.File).Name()))
		case <-ctx.Done():
		}
	}()
	var err error
	p.driver, err = kubelet.Register(ctx, registryDir)
	return err
}
