// Package cgroup lays out, fills and removes the cluster's part of the cgroup
// tree, on cgroup v2 and on v1 (with or without the "hybrid" v2 tree beside it).
//
// One cluster owns one group, dovetail-NAME, below the root of every hierarchy:
//
//	dovetail-NAME/system          the cluster's init and the control plane
//	dovetail-NAME/NODE            kubelet's cgroupRoot; its Pods are below
//	dovetail-NAME/NODE/system     containerd, the shims, kubelet, `exec` commands
//
// Only leaves hold processes, as v2 demands of groups that pass controllers on.
// Whatever is found in the group belongs to the cluster; nothing else is touched.
package cgroup

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Root is where cgroups are mounted on every Linux system of today.
const Root = "/sys/fs/cgroup"

// Tree is the machine's cgroup tree.
type Tree struct {
	root        string
	unified     bool
	hierarchies []string // v1: the directories of the hierarchies; v2: the root
}

// Detect finds out which version is mounted at root.
func Detect(root string) (Tree, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil {
		return Tree{}, fmt.Errorf("no cgroups at %s: %w (mount them, or run on a machine that has them)", root, err)
	}
	if fs.Type == unix.CGROUP2_SUPER_MAGIC {
		return Tree{root: root, unified: true, hierarchies: []string{root}}, nil
	}
	return detectV1(root)
}

// detectV1 lists the hierarchies below root. Links such as cpu -> cpu,cpuacct are
// other names of the same hierarchy and are left out.
func detectV1(root string) (Tree, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return Tree{}, fmt.Errorf("listing cgroup hierarchies: %w", err)
	}
	t := Tree{root: root}
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		if _, err := os.Stat(filepath.Join(dir, procsFile)); e.IsDir() && err == nil {
			t.hierarchies = append(t.hierarchies, dir)
		}
	}
	if len(t.hierarchies) == 0 {
		return Tree{}, fmt.Errorf("%s holds no cgroup hierarchy: mount cgroup2 there (mount -t cgroup2 none %s)", root, root)
	}
	return t, nil
}

// Unified says whether this is cgroup v2.
func (t Tree) Unified() bool { return t.unified }

// String names the version in words that a user knows.
func (t Tree) String() string {
	switch {
	case t.unified:
		return "cgroup v2 (unified)"
	case t.has("unified"):
		return "cgroup v1 (hybrid)"
	}
	return "cgroup v1"
}

func (t Tree) has(hierarchy string) bool {
	for _, h := range t.hierarchies {
		if filepath.Base(h) == hierarchy {
			return true
		}
	}
	return false
}

// dirs returns the directories of a group, one in each hierarchy.
func (t Tree) dirs(group string) []string {
	var out []string
	for _, h := range t.hierarchies {
		out = append(out, filepath.Join(h, group))
	}
	return out
}

// Exists says whether the group is there in any hierarchy.
func (t Tree) Exists(group string) bool {
	for _, d := range t.dirs(group) {
		if _, err := os.Stat(d); err == nil {
			return true
		}
	}
	return false
}

// System is the leaf of a group that holds daemons.
func System(group string) string { return filepath.Join(group, "system") }
