package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// resident is a process's memory in KiB, from /proc/PID/status.
type resident struct{ all, anonymous int }

func (r resident) cells() []string { return []string{mebibytes(r.all), mebibytes(r.anonymous)} }

func mebibytes(kib int) string { return fmt.Sprintf("%.1f MiB", float64(kib)/1024) }

func memoryOf(pid int) (r resident, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return r, err
	}
	for line := range strings.SplitSeq(string(content), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "VmRSS:":
			r.all, err = strconv.Atoi(fields[1])
		case "RssAnon:":
			r.anonymous, err = strconv.Atoi(fields[1])
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// ticks are how /proc/PID/stat counts: USER_HZ is 100 on all of Linux.
const ticks = time.Second / 100

// statOf is what /proc/PID/stat has of a process, by the numbers of proc_pid_stat(5) less 3.
func statOf(pid int) ([]string, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(content), ") ") // a name may have blanks
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return nil, fmt.Errorf("/proc/%d/stat: %q", pid, content)
	}
	return fields, nil
}

// cpuOf is the processor time that a process has taken.
func cpuOf(pid int) (time.Duration, error) {
	fields, err := statOf(pid)
	if err != nil {
		return 0, err
	}
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	return time.Duration(user+system) * ticks, err
}

// childrenOf are the page faults of processes' children that have ended, which each child
// adds to: they stay the same while there is none.
func childrenOf(pids ...int) (faults []string, err error) {
	for _, pid := range pids {
		fields, err := statOf(pid)
		if err != nil {
			return nil, err
		}
		faults = append(faults, fields[8])
	}
	return faults, nil
}

// childOf is the first child of a process.
func childOf(pid int) (int, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0, err
	}
	for _, list := range lists {
		content, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended
		}
		if children := strings.Fields(string(content)); len(children) > 0 {
			return strconv.Atoi(children[0])
		}
	}
	return 0, fmt.Errorf("process %d has no child", pid)
}

// writes is how many requests other than reads an agent has sent to the API server,
// as it says itself.
func writes(ctx context.Context, address string) (total float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	var seen bool
	for line := range strings.SplitSeq(string(content), "\n") {
		if !strings.HasPrefix(line, "dovetail_api_requests_total{") {
			continue
		}
		seen = true
		if strings.Contains(line, `method="get"`) {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
		if err != nil {
			return 0, err
		}
		total += value
	}
	if !seen {
		return 0, fmt.Errorf("%s/metrics has no dovetail_api_requests_total", address)
	}
	return total, nil
}
