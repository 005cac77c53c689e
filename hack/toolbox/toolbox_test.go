package toolbox

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
)

func TestCache(t *testing.T) {
	tests := []struct {
		name                string
		dovetail, xdg, home string
		want                string
	}{
		{"its own variable first", "/a", "/b", "/c", "/a"},
		{"then XDG's", "", "/b", "/c", "/b/dovetail"},
		{"then the home", "", "", "/c", "/c/.cache/dovetail"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("DOVETAIL_CACHE", tt.dovetail)
			t.Setenv("XDG_CACHE_HOME", tt.xdg)
			t.Setenv("HOME", tt.home)
			if got, err := Cache(); err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	t.Run("no variable at all", func(t *testing.T) {
		for _, name := range []string{"DOVETAIL_CACHE", "XDG_CACHE_HOME", "HOME"} {
			t.Setenv(name, "")
		}
		if got, err := Cache(); err == nil && !strings.HasSuffix(got, "/.cache/dovetail") {
			t.Errorf("got %q, want the user's own cache", got)
		}
	})
}

func TestUnknownTool(t *testing.T) {
	_, err := Path(t.Context(), "hammer", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "hammer is no tool") || !strings.Contains(err.Error(), "helm") {
		t.Errorf("error %v; want one that names the tools there are", err)
	}
}

func TestPinned(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Glob(filepath.Join(root, "hack", "tools", "*", "go.mod"))
	if err != nil || len(modules) == 0 {
		t.Fatalf("no tool found: %v", err)
	}
	for _, m := range modules {
		dir := filepath.Dir(m)
		pkg, version, err := pinned(t.Context(), dir)
		if err != nil || filepath.Base(pkg) != filepath.Base(dir) || !strings.HasPrefix(version, "v") {
			t.Errorf("%s: package %q, version %q, error %v; want a package of the folder's name", m, pkg, version, err)
		}
	}
}
