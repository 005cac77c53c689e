package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Look is what a process shows of itself to root.
type Look struct {
	// Name is that of its program, of which the kernel keeps 15 bytes.
	Name string
	// Program is the base name of what it was called by.
	Program     string
	environment []byte
	pid         int
}

// Has says whether the process was started with the variable at that value.
func (l *Look) Has(variable, value string) bool {
	return slices.ContainsFunc(bytes.Split(l.environment, []byte{0}), func(entry []byte) bool {
		return string(entry) == variable+"="+value
	})
}

// SameContainer says whether the process is in the very control groups that this process
// is in, which a container has for itself: unlike the environment, no stranger can choose
// them.
func (l *Look) SameContainer() bool {
	own, err := os.ReadFile("/proc/self/cgroup")
	if errors.Is(err, os.ErrNotExist) { // a kernel without control groups
		return true
	}
	its, failed := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", l.pid))
	return err == nil && failed == nil && bytes.Equal(own, its)
}

// Find opens the processes that match. Those that cannot be looked at, since they are
// not ours to look at or end just now, do not.
func Find(match func(*Look) bool) ([]*Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []*Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if l := look(pid); l == nil || !match(l) {
			continue
		}
		p, err := Open(pid)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return found, err
		}
		if l := look(pid); l != nil && match(l) { // it is the same, or one that matches as well
			found = append(found, p)
		} else if err := p.Close(); err != nil {
			return found, err
		}
	}
	return found, nil
}

func look(pid int) *Look {
	read := func(file string) []byte {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil {
			return nil
		}
		return data
	}
	environment := read("environ")
	if len(environment) == 0 {
		return nil
	}
	program, _, _ := bytes.Cut(read("cmdline"), []byte{0})
	return &Look{Name: strings.TrimSpace(string(read("comm"))), Program: filepath.Base(string(program)), environment: environment, pid: pid}
}
