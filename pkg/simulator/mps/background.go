package mps

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// readyVariable is set for a daemon in the background: descriptor 3 takes what keeps
// it from starting.
const readyVariable = "DOVETAIL_SIM_MPS_READY"

// reportStart tells whoever waits for a daemon in the background, once.
func reportStart(err error) error {
	if os.Getenv(readyVariable) == "" {
		return err
	}
	os.Unsetenv(readyVariable)
	to := os.NewFile(3, "ready")
	defer to.Close()
	if err != nil {
		fmt.Fprint(to, err)
	}
	return err
}

// inBackground starts the same again in a session of its own, and waits until it can
// be asked. What it has open is its log alone: whoever waits for the end of this
// program's output does not wait for the daemon's.
func inBackground(self string, args []string) error {
	logDir := cmp.Or(os.Getenv("CUDA_MPS_LOG_DIRECTORY"), "/var/log/nvidia-mps")
	if err := makeDir(logDir); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(logDir, "control.log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	again := []string{ControlName}
	for _, arg := range args {
		if arg == "-d" || arg == "--daemon" {
			arg = "-f"
		}
		again = append(again, arg)
	}
	_, err = os.StartProcess(self, again, &os.ProcAttr{
		Env: append(os.Environ(), readyVariable+"=1"), Files: []*os.File{log, log, log, to}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	to.Close()
	if err != nil {
		return err
	}
	problem, err := io.ReadAll(from)
	if err == nil && len(problem) > 0 {
		err = errors.New(string(problem))
	}
	return err
}
