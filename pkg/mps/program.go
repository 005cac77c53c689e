package mps

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/mps/launch"
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

// command is a program of the driver's in its root, s's environment with it; s may be nil.
// Nothing of this process's environment reaches it.
//
// A command for a control daemon runs in the daemon's own root, where the set's directories
// are what the daemon has; so nothing of it has to be mounted again.
func (m *Manager) command(ctx context.Context, s *set, program string, args ...string) (*exec.Cmd, error) {
	root := m.options.DriverRoot
	switch {
	case s == nil:
	case s.root == nil:
		return m.launched(ctx, s, program, args...)
	default:
		root = fmt.Sprintf("/proc/self/fd/%d", s.root.Fd())
	}
	at, err := m.locate(program)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, at, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	s.prepare(command)
	return command, nil
}

// launched is a program of the driver's in its root, where it sees the set's directories.
func (m *Manager) launched(ctx context.Context, s *set, program string, args ...string) (*exec.Cmd, error) {
	at, err := m.locate(program)
	if err != nil {
		return nil, err
	}
	argument, err := launch.Spec{Root: m.options.DriverRoot, Dir: s.dir, Shm: s.shm(), Command: append([]string{at}, args...)}.Argument()
	if err != nil {
		return nil, err
	}
	launcher := append(m.options.Launcher[:len(m.options.Launcher):len(m.options.Launcher)], argument)
	command := exec.CommandContext(ctx, launcher[0], launcher[1:]...)
	s.prepare(command)
	return command, nil
}

// prepare gives a program what all of a set's have, or of none's.
func (s *set) prepare(command *exec.Cmd) {
	command.Env, command.Dir, command.WaitDelay = []string{"PATH=" + path, "LC_ALL=C"}, "/", time.Second
	if s != nil {
		command.Env = append(command.Env, marker+"="+s.dir, pipeVariable+"="+s.pipe(), "CUDA_MPS_LOG_DIRECTORY="+s.log(),
			"CUDA_VISIBLE_DEVICES="+strings.Join(s.devices, ","))
	}
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
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err = failure.New(failure.Busy, "it has not answered in time")
	case command.Process == nil && command.SysProcAttr != nil: // it takes the capability SYS_CHROOT
		err = fmt.Errorf("it cannot be started in the root %s: %w", command.SysProcAttr.Chroot, err)
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
