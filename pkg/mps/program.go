package mps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/mps/launch"
	"github.com/dovetail-dra/dovetail/pkg/mps/process"
)

// The driver's programs.
const (
	controlProgram = "nvidia-cuda-mps-control"
	smiProgram     = "nvidia-smi"
)

const pipeVariable = "CUDA_MPS_PIPE_DIRECTORY"

// path is PATH of the driver's programs, and where they are looked for: where
// packages and the driver's installer put them, and on nodes of some clouds.
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/nvidia/bin"

// commandPatience is for a program that gives a command or sets something.
const commandPatience = 10 * time.Second

// maxOutput is how much of a program's output goes into an error, in bytes.
const maxOutput = 500

// locate finds a program in the driver's root.
func (m *Manager) locate(program string) (string, error) {
	for dir := range strings.SplitSeq(path, ":") {
		at := filepath.Join(dir, program)
		if _, err := os.Lstat(filepath.Join(m.options.DriverRoot, at)); err == nil {
			return at, nil
		}
	}
	return "", failure.New(failure.Unreachable, "%s is nowhere in %s: install the driver with its compute utilities, or correct --driver-root",
		program, m.options.DriverRoot)
}

// command is a program of the driver's in its root, where it sees the set's directories;
// s may be nil. Nothing of this process's environment reaches it.
func (m *Manager) command(ctx context.Context, s *set, program string, args ...string) (*exec.Cmd, error) {
	at, err := m.locate(program)
	if err != nil {
		return nil, err
	}
	spec := launch.Spec{Root: m.options.DriverRoot, Command: append([]string{at}, args...)}
	environment := []string{"PATH=" + path, "LC_ALL=C"}
	if s != nil {
		spec.Dir, spec.Shm = s.dir, s.shm()
		environment = append(environment, marker+"="+s.dir, pipeVariable+"="+s.pipe(), "CUDA_MPS_LOG_DIRECTORY="+s.log(),
			"CUDA_VISIBLE_DEVICES="+strings.Join(s.devices, ","))
	}
	argument, err := spec.Argument()
	if err != nil {
		return nil, err
	}
	launcher := append(m.options.Launcher[:len(m.options.Launcher):len(m.options.Launcher)], argument)
	command := exec.CommandContext(ctx, launcher[0], launcher[1:]...)
	command.Env, command.Dir, command.WaitDelay = environment, "/", time.Second
	return command, nil
}

// run runs a program to its end and returns what it wrote.
func (m *Manager) run(ctx context.Context, s *set, input, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandPatience)
	defer cancel()
	command, err := m.command(ctx, s, program, args...)
	if err != nil {
		return "", err
	}
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		err = failure.New(failure.Busy, "it has not answered in time")
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w%s", strings.TrimSpace(program+" "+strings.Join(args, " ")+" "+input), err, words(output))
	}
	return string(output), nil
}

// words are a program's, for an error.
func words(output []byte) string {
	output = bytes.TrimSpace(output)
	if len(output) == 0 {
		return ""
	}
	text := strings.Join(strings.Fields(string(output[max(0, len(output)-maxOutput):])), " ")
	return ": " + strings.ToValidUTF8(text, "")
}

// errEnded: the control daemon has ended instead of serving.
var errEnded = errors.New("ended at once")

// launch starts the set's control daemon and waits until it answers. It is no part of
// this process's fate: it has a session of its own and writes to files alone.
func (m *Manager) launch(ctx context.Context, s *set) (*process.Process, error) {
	options := []string{"-f", "-p", "3", "-m"}
	if s.record.Protocol == 2 {
		options = []string{"-f", "-multiuser-server"}
	}
	daemon, err := m.launchWith(ctx, s, options)
	if !errors.Is(err, errEnded) || s.record.Protocol != 2 {
		return daemon, err
	}
	if daemon, err = m.launchWith(ctx, s, options); !errors.Is(err, errEnded) {
		return daemon, err // that was an accident
	}
	// It may be too old for the option; a try tells, whatever it has said.
	if daemon, err = m.launchWith(ctx, s, options[:1]); err == nil {
		m.options.Log.Warn("This driver's MPS serves one user at a time", "devices", s.devices)
	}
	return daemon, err
}

func (m *Manager) launchWith(ctx context.Context, s *set, options []string) (_ *process.Process, err error) {
	root, err := os.OpenRoot(s.log())
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	output, err := root.OpenFile("output.log", os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = output.Close() }()
	command, err := m.command(context.WithoutCancel(ctx), s, controlProgram, options...)
	if err != nil {
		return nil, err
	}
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return nil, err
	}
	daemon, err := process.Open(command.Process.Pid)
	go func() { _ = command.Wait() }() // so that it is no zombie, while it is ours
	if err == nil {
		err = m.answers(ctx, s, daemon)
	}
	if err == nil {
		return daemon, nil
	}
	if errors.Is(err, process.ErrGone) {
		err = errEnded
	}
	said, _ := root.ReadFile("output.log")
	err = fmt.Errorf("%s over %q: %w%s", controlProgram, s.devices, err, words(said))
	if daemon != nil {
		_ = daemon.Close()
	}
	return nil, errors.Join(err, killAll(s.dir))
}

// answers waits until the daemon can be asked.
func (m *Manager) answers(ctx context.Context, s *set, daemon *process.Process) error {
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	var last error
	for {
		select {
		case <-daemon.Ended():
			return errEnded
		case <-ctx.Done():
			return failure.New(failure.Busy, "it has not begun to answer in time (%v)", last)
		case <-look.C:
		}
		if _, err := os.Lstat(filepath.Join(s.pipe(), "control")); err != nil {
			continue
		}
		if _, last = m.servers(ctx, s); last == nil {
			return nil
		}
		look.Reset(50 * time.Millisecond) // asking is dear
	}
}
