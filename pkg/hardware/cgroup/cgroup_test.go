package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestOf(t *testing.T) {
	proc, root := t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "cgroup.controllers"), "memory")
	write(t, filepath.Join(root, "pod/c1/cgroup.controllers"), "memory")
	for name, test := range map[string]struct {
		cgroups string
		want    string // below root
		class   error  // nil: none
		words   string
	}{
		"unified":            {cgroups: "0::/pod/c1\n", want: "pod/c1"},
		"named beside":       {cgroups: "1:name=other:/pod\n0::/pod/c1\n", want: "pod/c1"},
		"the root's":         {cgroups: "0::/\n"},
		"version 1":          {cgroups: "4:memory:/pod/c1\n1:cpu:/pod/c1\n", class: failure.Unsupported, words: "cgroup version 2"},
		"not in the unified": {cgroups: "4:memory:/pod/c1\n0::/system.slice/c1\n", class: failure.Unsupported, words: "cgroup version 2"},
		"out of sight":       {cgroups: "0::/../pod/c1\n", class: failure.Unsupported, words: `"/../pod/c1"`},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, filepath.Join(proc, "7/cgroup"), test.cgroups)
			path, err := Of("7", proc, root)
			if test.class == nil && (err != nil || path != filepath.Join(root, test.want)) {
				t.Errorf("%q, %v", path, err)
			}
			if test.class != nil && (!errors.Is(err, test.class) || !strings.Contains(err.Error(), test.words)) {
				t.Errorf("%q, %v", path, err)
			}
		})
	}
	if _, err := Of("8", proc, root); !errors.Is(err, failure.Absent) {
		t.Errorf("a process that has gone: %v", err)
	}
}

// TestOwn: on this machine's kernel, whichever version it has.
func TestOwn(t *testing.T) {
	if other := t.TempDir(); Unified(other) || Own(other) != "" || Own("") != "" {
		t.Errorf("%s has a cgroup %q", other, Own(other))
	}
	own := Own(Root)
	if (own != "") != Unified(Root) {
		t.Fatalf("cgroup %q, unified: %t", own, Unified(Root))
	}
	if _, err := os.Stat(filepath.Join(own, "cgroup.procs")); own != "" && err != nil {
		t.Error(err)
	}
}
