// Package launch starts and ends clusters, from the host's side.
package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/cgroup"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/config"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/controlplane"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/hostdirs"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

// ErrRunning says that the cluster is up already.
var ErrRunning = errors.New("the cluster is up already")

// Up starts a cluster and returns when Pods can run. If it fails, or ctx ends,
// nothing is left of the cluster.
func Up(ctx context.Context, c *state.Cluster, out io.Writer) error {
	tree, err := cgroup.Detect(cgroup.Root)
	if err != nil {
		return err
	}
	lock, err := state.LockCluster(c.Name, 10*time.Second)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := clearRemains(ctx, c, tree, out); err != nil {
		return err
	}
	fmt.Fprintf(out, "starting cluster %q with %d node(s) on %s; state in %s\n", c.Name, len(c.Nodes), tree, c.Dir)
	if err := prepare(c, tree); err != nil {
		return errors.Join(err, clean(c, tree))
	}
	err = start(ctx, c, out)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		fmt.Fprintln(out, "interrupted; taking the cluster down")
		err = ctx.Err()
	} else if tail := logTail(c, err.Error()); tail != "" {
		fmt.Fprint(out, tail)
	}
	return errors.Join(err, clean(c, tree))
}

// clearRemains removes what a cluster of that name left that does not run now.
func clearRemains(ctx context.Context, c *state.Cluster, tree cgroup.Tree, out io.Writer) error {
	found := *c
	err := found.Load()
	switch {
	case err == nil:
		if run, ok, _ := state.LoadRun(found.RunFile()); ok && run.Alive() {
			return ErrRunning
		}
	case errors.Is(err, fs.ErrNotExist):
		if !tree.Exists(c.Group()) {
			return ctx.Err()
		}
		if dir, ok := hostdirs.Host().StateDir(c.Name); ok && dir != c.Dir {
			return fmt.Errorf("a cluster %q has its state in %s: use it with --state-dir %[2]s, or give another --name", c.Name, dir)
		}
	default:
		return err
	}
	fmt.Fprintln(out, "removing what an earlier cluster of this name left behind")
	return clean(c, tree)
}

// prepare makes everything that a cluster needs before its first process.
func prepare(c *state.Cluster, tree cgroup.Tree) error {
	if err := c.Create(); err != nil {
		return err
	}
	if err := hostdirs.Host().Claim(c.Name, c.Dir); err != nil {
		return err
	}
	if err := config.WritePKI(c); err != nil {
		return err
	}
	return tree.Prepare(c.Group(), c.Nodes)
}

// start starts init and follows its progress.
func start(ctx context.Context, c *state.Cluster, out io.Writer) error {
	init, err := startInit(c)
	if err != nil {
		return err
	}
	defer init.letGo()
	done := make(chan error, 1)
	begin := time.Now()
	go func() { done <- follow(init.progress, out, begin) }()
	select {
	case err := <-done:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	return init.detach()
}

// follow prints progress until the cluster is up.
func follow(progress io.Reader, out io.Writer, begin time.Time) error {
	lines := bufio.NewScanner(progress)
	for lines.Scan() {
		line := lines.Text()
		if line == controlplane.Ready {
			return nil
		}
		if why, ok := strings.CutPrefix(line, controlplane.Failed); ok {
			return fmt.Errorf("the cluster did not come up: %s", why)
		}
		fmt.Fprintf(out, "%5.1f s  %s\n", time.Since(begin).Seconds(), line)
	}
	return errors.New("the cluster's init ended before the cluster was up; its log is init.log")
}

// logTail shows the end of the log that an error names, before it is removed.
func logTail(c *state.Cluster, message string) string {
	entries, _ := os.ReadDir(c.Logs())
	for _, e := range entries {
		if !strings.Contains(message, " "+e.Name()) {
			continue
		}
		b, _ := os.ReadFile(c.Log(strings.TrimSuffix(e.Name(), ".log")))
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		lines = lines[max(0, len(lines)-15):]
		return fmt.Sprintf("--- the end of %s:\n%s\n---\n", e.Name(), strings.Join(lines, "\n"))
	}
	return ""
}
