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
)

const libraryPackage = "github.com/dovetail-dra/dovetail/cmd/libnvidia-ml"

var build = sync.OnceValues(buildLibrary)

// Library returns the path of the simulated NVML, built from this tree once a
// process and kept in the user's cache. Its name has its content's hash, so
// that a process which has an older one open keeps it.
func Library(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatalf("building the simulated NVML: %v", err)
	}
	return path
}

func buildLibrary() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "dovetail", "libnvidia-ml")
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
	built := filepath.Join(dir, "build.so")
	// -race and -cover of the test must not get in: this is another program.
	command := exec.Command("go", "build", "-buildmode=c-shared", "-race=false", "-cover=false",
		"-ldflags=-s -w -extldflags=-Wl,-soname,libnvidia-ml.so.1", "-o", built, libraryPackage)
	command.Env = append(os.Environ(), "CGO_ENABLED=1")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", command.Args, err, output)
	}
	data, err := os.ReadFile(built)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	path := filepath.Join(dir, hex.EncodeToString(sum[:8])+".so")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	old, _ := filepath.Glob(filepath.Join(dir, "????????????????.so"))
	for _, o := range old {
		os.Remove(o)
	}
	if err := os.WriteFile(path+".new", data, 0o755); err != nil {
		return "", err
	}
	return path, os.Rename(path+".new", path)
}
