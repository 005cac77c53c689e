package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dovetail-dra/dovetail/hack/toolbox"
)

// toolPrefix marks a command that is one of the pinned tools.
const toolPrefix = "tool:"

// step is one check: a command, or a function of this program.
type step struct {
	group, name string

	argv []string
	do   func(ctx context.Context, log io.Writer) error
	dir  string

	// tests: argv is a "go test -json", whose tests are counted.
	tests bool
	// each: show every test as it ends, not only its package.
	each bool
	// packages, if set, are appended to argv; with none the step is skipped.
	packages func(ctx context.Context) ([]string, error)
	// needs is a path without which the step is skipped.
	needs string
	// lacking is the exit code by which argv says that this machine cannot have what
	// it needs, with the reason as its last line on standard error. Among other
	// groups the step is then skipped; where its group alone is asked for, it fails.
	lacking int
	asked   bool
	// ahead is work that begins before the first step; wait waits for its end.
	ahead *step
	wait  bool
}

// result is how a step ended.
type result struct {
	step    step
	skipped string
	err     error
	took    time.Duration
	counts  counts
}

func (s step) absent() bool {
	if s.needs == "" {
		return false
	}
	_, err := os.Stat(s.needs)
	return err != nil
}

func (s step) execute(ctx context.Context, begun map[string]*background) result {
	began := time.Now()
	r := result{step: s}
	switch {
	case s.absent():
		r.skipped = s.needs + " does not exist"
		fmt.Println("skipped:", r.skipped)
	case s.wait:
		r.err = begun[s.ahead.name].join(ctx)
	case s.do != nil:
		r.err = s.do(ctx, os.Stdout)
	default:
		r.counts, r.skipped, r.err = s.command(ctx)
	}
	r.took = time.Since(began)
	if r.err != nil {
		fmt.Printf("FAILED %s: %s: %v\n", s.group, s.name, r.err)
	}
	return r
}

func (s step) command(ctx context.Context) (counts, string, error) {
	argv := s.argv
	if s.packages != nil {
		list, err := s.packages(ctx)
		if err != nil {
			return counts{}, "", err
		}
		if len(list) == 0 {
			return counts{}, "no package", nil
		}
		argv = append(argv[:len(argv):len(argv)], list...)
	}
	cmd, err := start(ctx, argv, s.dir)
	if err != nil {
		return counts{}, "", err
	}
	if !s.tests {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
		return counts{}, "", cmd.Run()
	}
	log, err := os.Create(filepath.Join("out", "log", slug(s.group+" "+s.name)+".json"))
	if err != nil {
		return counts{}, "", err
	}
	defer func() { _ = log.Close() }()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return counts{}, "", err
	}
	var said strings.Builder
	cmd.Stderr = io.MultiWriter(os.Stdout, &said)
	if err := cmd.Start(); err != nil {
		return counts{}, "", err
	}
	reader := newReader(os.Stdout, s.each)
	err = reader.read(io.TeeReader(stdout, log))
	if err != nil {
		_, _ = io.Copy(io.Discard, stdout)
	}
	exit := cmd.Wait()
	if s.lacking != 0 && cmd.ProcessState.ExitCode() == s.lacking {
		reason := lastLine(said.String())
		if s.asked {
			return counts{}, "", fmt.Errorf("not run: %s", reason)
		}
		fmt.Println("skipped: not run:", reason)
		return counts{}, "not run: " + reason, nil
	}
	if exit != nil && err == nil && reader.counts.failed() == 0 {
		// Tests that failed say so themselves.
		err = fmt.Errorf("go test: %w (%s has its output)", exit, log.Name())
	}
	return reader.counts, "", err
}

// lastLine is the last line of a text.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// start prepares a command of ours: in dir, and ended gently with ctx, so that
// a cluster that it brought up can be taken down.
func start(ctx context.Context, argv []string, dir string) (*exec.Cmd, error) {
	name := argv[0]
	if t, ok := strings.CutPrefix(name, toolPrefix); ok {
		path, err := toolbox.Path(ctx, t, os.Stdout)
		if err != nil {
			return nil, err
		}
		name = path
	}
	cmd := exec.CommandContext(ctx, name, argv[1:]...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 60 * time.Second
	return cmd, nil
}
