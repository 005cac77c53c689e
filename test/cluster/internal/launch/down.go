package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/cgroup"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/hostdirs"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/mount"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

// Down ends a cluster, whatever state it is in, and removes all of it. That there
// is none is fine.
func Down(c *state.Cluster, out io.Writer) error {
	tree, err := cgroup.Detect(cgroup.Root)
	if err != nil {
		return err
	}
	dir, known := hostdirs.Host().StateDir(c.Name)
	if known && dir != c.Dir {
		return fmt.Errorf("cluster %q has its state in %s: say `down --state-dir %[2]s`", c.Name, dir)
	}
	if _, err := os.Stat(c.Dir); errors.Is(err, fs.ErrNotExist) && !known && !tree.Exists(c.Group()) {
		fmt.Fprintf(out, "no cluster %q\n", c.Name)
		return nil
	}
	begin := time.Now()
	// An `up` that is under way holds the lock until its init is gone.
	if err := endInit(c); err != nil {
		return err
	}
	lock, err := state.LockCluster(c.Name, 3*time.Minute)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := clean(c, tree); err != nil {
		return err
	}
	fmt.Fprintf(out, "cluster %q is down (%.1f s)\n", c.Name, time.Since(begin).Seconds())
	return nil
}

// endInit ends the recorded init, and with it every process of the cluster.
func endInit(c *state.Cluster) error {
	run, ok, err := state.LoadRun(c.RunFile())
	if err != nil || !ok {
		return err
	}
	return run.Kill(10 * time.Second)
}

// clean ends and removes all of a cluster. It needs no more than the names, goes on
// after a failure, and may be called again.
func clean(c *state.Cluster, tree cgroup.Tree) error {
	err := endInit(c)
	err = errors.Join(err, tree.Kill(c.Group(), 10*time.Second)) // stragglers, if init was not recorded
	err = errors.Join(err, tree.Remove(c.Group(), 5*time.Second))
	err = errors.Join(err, removeState(c))
	return errors.Join(err, hostdirs.Host().Release(c.Name))
}

// removeState removes the state directory, if it is one. The nodes' mounts are in
// namespaces that are gone; should anything else be mounted there, it is unmounted
// rather than emptied.
func removeState(c *state.Cluster) error {
	if _, err := os.Stat(c.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(c.File()); err != nil {
		if os.Remove(c.Dir) == nil { // empty: `up` was killed just after it made it
			return nil
		}
		return fmt.Errorf("%s does not look like a cluster's state (no cluster.json), so it stays: remove it yourself", c.Dir)
	}
	if err := mount.UnmountBelow(c.Dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries { // the mark last, so that `down` can go on if it is cut short
		if e.Name() != "cluster.json" {
			err = errors.Join(err, os.RemoveAll(c.Dir+"/"+e.Name()))
		}
	}
	return errors.Join(err, os.RemoveAll(c.Dir))
}
