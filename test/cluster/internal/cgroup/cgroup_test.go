package cgroup

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// put writes a file of a made-up cgroup tree.
func put(t *testing.T, text string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// groups are all groups of a cluster c with one node.
var groups = []string{"c", "c/system", "c/n", "c/n/system"}

func TestV1(t *testing.T) {
	root := t.TempDir()
	for _, h := range []string{"cpu,cpuacct", "cpuset", "memory", "unified"} {
		put(t, "", root, h, procsFile)
	}
	if err := os.Symlink("cpu,cpuacct", filepath.Join(root, "cpu")); err != nil {
		t.Fatal(err)
	}
	put(t, "0-1\n", root, "cpuset/cpuset.cpus")
	put(t, "0\n", root, "cpuset/cpuset.mems")
	for _, g := range groups { // the kernel makes these files with the directory
		put(t, "", root, "cpuset", g, "cpuset.cpus")
		put(t, "", root, "cpuset", g, "cpuset.mems")
	}
	tree, err := Detect(root)
	if err != nil {
		t.Fatal(err)
	}
	if got := tree.String(); got != "cgroup v1 (hybrid)" || tree.Unified() {
		t.Errorf("found %s", got)
	}
	if len(tree.hierarchies) != 4 {
		t.Errorf("hierarchies %v: a link is another name, not another hierarchy", tree.hierarchies)
	}
	if err := tree.Prepare("c", []string{"n"}); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if got := get(t, root, "cpuset", g, "cpuset.cpus"); got != "0-1" {
			t.Errorf("%s has CPUs %q", g, got)
		}
		if _, err := os.Stat(filepath.Join(root, "memory", g)); err != nil {
			t.Error(err)
		}
	}
	if !tree.Exists("c") || tree.Exists("d") {
		t.Error("Exists is wrong")
	}
}

func v2(t *testing.T, controllers string) Tree {
	t.Helper()
	root := t.TempDir()
	for _, g := range append(groups, "") {
		put(t, controllers, root, g, "cgroup.controllers")
		put(t, "", root, g, controlFile)
	}
	return Tree{root: root, unified: true, hierarchies: []string{root}}
}

func TestV2LeavesAreLeaves(t *testing.T) {
	tree := v2(t, "cpuset cpu io memory hugetlb pids rdma misc\n")
	if err := tree.Prepare("c", []string{"n"}); err != nil {
		t.Fatal(err)
	}
	for _, g := range []string{"", "c", "c/n"} {
		if get(t, tree.root, g, controlFile) == "" {
			t.Errorf("group %q passes nothing on", g)
		}
	}
	for _, g := range []string{"c/system", "c/n/system"} { // they hold processes
		if got := get(t, tree.root, g, controlFile); got != "" {
			t.Errorf("leaf %q passes %q on", g, got)
		}
	}
	if tree.String() != "cgroup v2 (unified)" {
		t.Error(tree)
	}
}

func TestV2WithoutControllers(t *testing.T) {
	err := v2(t, "hugetlb\n").Prepare("c", nil)
	if err == nil || !strings.Contains(err.Error(), "lacks the cpu controller") {
		t.Errorf("got %v", err)
	}
}

func TestMissing(t *testing.T) {
	got := missing(wanted, []string{"cpu", "memory", "rdma"}, []string{"memory"})
	if !reflect.DeepEqual(got, []string{"cpu"}) {
		t.Errorf("got %v", got)
	}
}

func TestProcsAndRemove(t *testing.T) {
	root := t.TempDir()
	put(t, "11\n12\n", root, "g/a", procsFile)
	put(t, "12\n0\n13\n", root, "g/a/b", procsFile) // 0: of another PID namespace
	tree := Tree{root: root, unified: true, hierarchies: []string{root}}
	if got := tree.Procs("g"); !reflect.DeepEqual(got, []int{11, 12, 13}) {
		t.Errorf("got %v", got)
	}
	for _, d := range []string{"g/a", "g/a/b"} { // the kernel's files go with their directory
		if err := os.Remove(filepath.Join(root, d, procsFile)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tree.Remove("g", 0); err != nil || tree.Exists("g") {
		t.Errorf("still there: %v", err)
	}
	if err := tree.Remove("g", 0); err != nil {
		t.Errorf("a second time: %v", err)
	}
}
