package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	procsFile   = "cgroup.procs"
	controlFile = "cgroup.subtree_control"
)

// wanted are the v2 controllers that kubelet and runc use.
var wanted = []string{"cpuset", "cpu", "io", "memory", "hugetlb", "pids"}

// required are those without which kubelet does not start on v2.
var required = []string{"cpu", "memory", "pids"}

// Prepare makes the group of a cluster and of its nodes. It may be called again.
func (t Tree) Prepare(group string, nodes []string) error {
	inner := []string{group}
	for _, n := range nodes {
		inner = append(inner, filepath.Join(group, n))
	}
	if t.unified {
		if err := t.enable(t.root); err != nil {
			return err
		}
	}
	for _, g := range inner {
		if err := t.make(g); err != nil {
			return err
		}
		if t.unified {
			if err := t.enable(filepath.Join(t.root, g)); err != nil {
				return err
			}
		}
	}
	for _, g := range inner {
		if err := t.make(System(g)); err != nil {
			return err
		}
	}
	return nil
}

// make creates one group in every hierarchy. On v1 a new cpuset is empty, and
// nothing can enter it before it has CPUs and memory nodes.
func (t Tree) make(group string) error {
	for _, d := range t.dirs(group) {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("making cgroup: %w", err)
		}
	}
	if !t.unified && t.has("cpuset") {
		return copyCpuset(filepath.Join(t.root, "cpuset", group))
	}
	return nil
}

// copyCpuset gives a v1 cpuset what its parent has.
func copyCpuset(dir string) error {
	for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(dir), f))
		if err != nil {
			return fmt.Errorf("reading parent cpuset: %w", err)
		}
		if err := write(filepath.Join(dir, f), strings.TrimSpace(string(b))); err != nil {
			return err
		}
	}
	return nil
}

// enable passes the controllers that a v2 group has on to its children.
func (t Tree) enable(dir string) error {
	have, err := words(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	on, err := words(filepath.Join(dir, controlFile))
	if err != nil {
		return err
	}
	for _, c := range missing(wanted, have, on) {
		err := write(filepath.Join(dir, controlFile), "+"+c)
		switch {
		case err == nil:
		case errors.Is(err, unix.EBUSY):
			return fmt.Errorf("cannot pass the %s controller on from %s: processes live in it, as in a container whose cgroup "+
				"is not split; move them into a leaf first: mkdir %[2]s/leaf && for p in $(cat %[2]s/cgroup.procs); do echo $p > %[2]s/leaf/cgroup.procs; done", c, dir)
		case contains(required, c):
			return err
		}
	}
	if dir == t.root {
		for _, c := range required {
			if !contains(have, c) {
				return fmt.Errorf("cgroup v2 at %s lacks the %s controller, which kubelet needs: boot with it "+
					"(cgroup_enable=%[2]s), or with systemd.unified_cgroup_hierarchy=0 if v1 holds it", dir, c)
			}
		}
	}
	return nil
}

// missing returns those of want that can be had and are not on yet.
func missing(want, have, on []string) []string {
	var out []string
	for _, c := range want {
		if contains(have, c) && !contains(on, c) {
			out = append(out, c)
		}
	}
	return out
}

// Join moves the calling process into the group.
func (t Tree) Join(group string) error {
	for _, d := range t.dirs(group) {
		if err := write(filepath.Join(d, procsFile), "0"); err != nil {
			return fmt.Errorf("joining cgroup %s: %w", group, err)
		}
	}
	return nil
}

func words(file string) ([]string, error) {
	b, err := os.ReadFile(file)
	return strings.Fields(string(b)), err
}

// write writes an existing control file; os.WriteFile would create one.
func write(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
