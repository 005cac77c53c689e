package sharedlib

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	program, err := exec.LookPath("gcc")
	if err != nil {
		t.Fatal(err)
	}
	found, err := Of([]string{"libdl.so.2"}, program)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"libc.so.6", "libdl.so.2"} {
		if _, err := os.Stat(found[name]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	loader := false
	for name, at := range found {
		loader = loader || strings.HasPrefix(name, "ld-") && filepath.IsAbs(at)
	}
	if !loader {
		t.Errorf("no loader among %v", found)
	}
}

func TestStaticNeedsNothing(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "static"), source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found, err := Of([]string{"libdl.so.2"}, filepath.Join(dir, "static"))
	if err != nil || len(found) != 0 {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestMissingLibrary(t *testing.T) {
	if _, err := Of([]string{"libnowhere.so.1"}, "/bin/sh"); err == nil || !strings.Contains(err.Error(), "libnowhere.so.1") {
		t.Errorf("got %v", err)
	}
}
