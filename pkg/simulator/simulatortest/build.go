package simulatortest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

const module = "github.com/dovetail-dra/dovetail/cmd/"

var (
	library = sync.OnceValues(func() (string, error) {
		return build("libnvidia-ml", ".so", "CGO_ENABLED=1", "-buildmode=c-shared",
			"-ldflags=-s -w -extldflags=-Wl,-soname,libnvidia-ml.so.1")
	})
	tools = sync.OnceValues(func() (string, error) {
		return build("dovetail-sim-tools", "", "CGO_ENABLED=0", "-ldflags=-s -w")
	})
)

// Library returns the path of the simulated NVML, built from this tree once a
// process and kept in the user's cache. Its name has its content's hash, so
// that a process which has an older one open keeps it.
func Library(t testing.TB) string {
	t.Helper()
	path, err := library()
	if err != nil {
		t.Fatalf("building the simulated NVML: %v", err)
	}
	return path
}

// Tools returns the path of the driver's programs (cmd/dovetail-sim-tools), as
// Library does.
func Tools(t testing.TB) string {
	t.Helper()
	path, err := tools()
	if err != nil {
		t.Fatalf("building the driver's programs: %v", err)
	}
	return path
}

// build builds a command of this tree.
func build(name, suffix, environment string, flags ...string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "dovetail", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	built := filepath.Join(dir, "build"+suffix)
	// -race and -cover of the test must not get in: this is another program.
	command := exec.Command("go", append(append([]string{"build", "-race=false", "-cover=false", "-o", built}, flags...), module+name)...)
	command.Env = append(os.Environ(), environment)
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", command.Args, err, output)
	}
	return keep(dir, built, suffix)
}

// keep keeps what was built under a name with its content's hash, in place of older ones.
func keep(dir, built, suffix string) (string, error) {
	data, err := os.ReadFile(built)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	path := filepath.Join(dir, hex.EncodeToString(sum[:8])+suffix)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	old, _ := filepath.Glob(filepath.Join(dir, "????????????????"+suffix))
	for _, o := range old { // a younger one may be in use by another test
		if info, err := os.Stat(o); err == nil && time.Since(info.ModTime()) > time.Hour {
			os.Remove(o)
		}
	}
	if err := CopyProgram(built, path+".new"); err != nil {
		return "", err
	}
	return path, os.Rename(path+".new", path)
}

// CopyProgram copies a program so that it can be run at once. No process may be made
// meanwhile: it would have the copy open for writing, and nobody could run it
// ("text file busy").
func CopyProgram(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(to, data, 0o755)
}
