package launch_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/mps/launch"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "launch" {
		fmt.Fprintln(os.Stderr, launch.Exec(os.Args[2]))
		os.Exit(1)
	}
	if len(os.Args) > 2 && os.Args[1] == "list" {
		list(os.Args[2:])
		return
	}
	os.Exit(m.Run())
}

// list is the program that is launched: it prints what it sees.
func list(dirs []string) {
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			fmt.Println(dir, err)
		}
		for _, e := range entries {
			info, err := os.Stat(filepath.Join(dir, e.Name()))
			fmt.Println(filepath.Join(dir, e.Name()), info != nil, err == nil)
		}
	}
	if err := os.WriteFile(filepath.Join(dirs[0], "written"), nil, 0o600); err != nil {
		fmt.Println(err)
	}
}

// root is a driver's root with this program in it, and what else is named.
func root(t *testing.T, names ...string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mount namespaces need root")
	}
	dir := t.TempDir()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, "program"), program, 0o755), os.Symlink("program", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	// It may need a loader and libraries.
	for _, lib := range []string{"lib", "lib64", "usr"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, lib), 0o755), syscall.Mount("/"+lib, filepath.Join(dir, lib), "", syscall.MS_BIND|syscall.MS_REC, "")); err != nil {
			t.Skipf("binding /%s: %v", lib, err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(filepath.Join(dir, lib), syscall.MNT_DETACH) })
	}
	return dir
}

func run(t *testing.T, spec launch.Spec) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argument, err := spec.Argument()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, "launch", argument)
	command.Env = []string{}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return string(output)
}

func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	for _, sub := range []string{"", "dev", "run"} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, filepath.Join(sub, e.Name()))
		}
	}
	return names
}

// TestDirs: the program sees the directories that it was given, and all that was in its
// root; the root stays as it is, and no mount is left.
func TestDirs(t *testing.T) {
	for name, there := range map[string][]string{
		"all mount points are there": {"dev/shm", "proc"},
		"no shm":                     {"dev/other", "run/other"},
		"neither":                    {"etc"},
	} {
		t.Run(name, func(t *testing.T) {
			at := root(t, there...)
			set := t.TempDir()
			shm := filepath.Join(set, "shm")
			if err := errors.Join(os.Mkdir(shm, 0o755), os.WriteFile(filepath.Join(shm, "segment"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			before, mounts := tree(t, at), mountinfo(t)
			output := run(t, launch.Spec{Root: at, Dir: set, Shm: shm, Command: []string{"/program", "list", set, "/dev/shm", "/", "/dev", "/run"}})
			for _, want := range []string{filepath.Join(set, "shm"), "/dev/shm/segment", "/program", "/link"} {
				if !strings.Contains(output, want+" true true\n") {
					t.Errorf("%s cannot be seen in\n%s", want, output)
				}
			}
			for _, dir := range there {
				if want := "/" + dir + " true true\n"; !strings.Contains(output, want) {
					t.Errorf("/%s cannot be seen in\n%s", dir, output)
				}
			}
			if _, err := os.Stat(filepath.Join(set, "written")); err != nil {
				t.Errorf("what the program wrote: %v", err)
			}
			if after := tree(t, at); !slices.Equal(after, before) {
				t.Errorf("the root has %v, and had %v", after, before)
			}
			if after := mountinfo(t); after != mounts {
				t.Errorf("mounts are\n%s, and were\n%s", after, mounts)
			}
		})
	}
}

// TestReadOnlyRoot: as a driver's image may be.
func TestReadOnlyRoot(t *testing.T) {
	at, set := root(t), t.TempDir()
	if err := errors.Join(
		syscall.Mount(at, at, "", syscall.MS_BIND|syscall.MS_REC, ""),
		syscall.Mount("", at, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""),
	); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Unmount(at, syscall.MNT_DETACH) }()
	output := run(t, launch.Spec{Root: at, Dir: set, Shm: set, Command: []string{"/program", "list", set, "/"}})
	if _, err := os.Stat(filepath.Join(set, "written")); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// TestLink: a link in the root could lead out of it.
func TestLink(t *testing.T) {
	at, elsewhere := root(t), t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(at, "dev")); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argument, err := launch.Spec{Root: at, Shm: elsewhere, Command: []string{"/program", "list", "/"}}.Argument()
	if err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command(self, "launch", argument).CombinedOutput(); err == nil || !strings.Contains(string(output), "/dev is no directory") {
		t.Errorf("%v\n%s", err, output)
	}
}

func mountinfo(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
