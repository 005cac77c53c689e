package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Run identifies the cluster's init on the host. A number alone would not do: it
// is used again after the process, or the machine, is gone.
type Run struct {
	PID       int    `json:"pid"`
	StartTime string `json:"startTime"` // field 22 of /proc/PID/stat
	Boot      string `json:"boot"`
}

// NewRun describes a process that runs now.
func NewRun(pid int) (Run, error) {
	start, err := startTime(pid)
	return Run{PID: pid, StartTime: start, Boot: bootID()}, err
}

// LoadRun reads the recorded init; ok is false if none was recorded.
func LoadRun(file string) (r Run, ok bool, err error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Run{}, false, nil
	}
	if err != nil {
		return Run{}, false, err
	}
	ok = json.Unmarshal(b, &r) == nil // one that was cut short is as good as none
	return r, ok, nil
}

// Alive says whether this very process still runs.
func (r Run) Alive() bool {
	start, err := startTime(r.PID)
	return err == nil && start == r.StartTime && r.Boot == bootID()
}

// Kill ends the process and waits for its end. For the init of a PID namespace
// that is the end of everything in it: the kernel sees to it before init is gone.
func (r Run) Kill(timeout time.Duration) error {
	fd, err := unix.PidfdOpen(r.PID, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	if !r.Alive() { // asked after the open: now fd cannot be another process
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("killing the cluster's init (process %d): %w", r.PID, err)
	}
	deadline := time.Now().Add(timeout)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, max(0, int(time.Until(deadline).Milliseconds())))
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for the cluster's init: %w", err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the cluster's init (process %d) did not end in %s; see /proc/%[1]d/stack", r.PID, timeout)
		}
	}
}

// startTime reads when a process began. A zombie counts as gone.
func startTime(pid int) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The name, in parentheses, may hold anything; what follows it may not.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", fs.ErrNotExist
	}
	return fields[19], nil
}

func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}
