// Package toolbox builds the programs that this project's own tools need (helm,
// golangci-lint, controller-gen, nvidia-cdi-hook), once, at the versions pinned in
// hack/tools/NAME/go.mod. Each has a Go module of its own, so that it is built
// from the very versions that its makers tested, and so that none of them
// weighs on the driver's go.mod. Standard library only.
package toolbox

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// cgo has the flags of the one tool that cannot do without cgo. It runs on the
// host, whose libc may be older than this machine's, and is therefore static.
// NVML cannot be loaded into a static program: its subcommand
// apply-cuda-memory-limits, which Dovetail does not use, needs it.
var cgo = map[string][]string{
	"nvidia-cdi-hook": {"-tags", "netgo,osusergo"},
}

const static = ` -linkmode external -extldflags "-static"`

// Cache is the folder for what is built or downloaded once and kept between
// runs, outside the source tree: $DOVETAIL_CACHE, or dovetail below
// $XDG_CACHE_HOME or below ~/.cache.
func Cache() (string, error) {
	if dir := os.Getenv("DOVETAIL_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "dovetail"), nil
	}
	home := os.Getenv("HOME")
	if home == "" {
		me, err := user.Current()
		if err != nil || me.HomeDir == "" {
			return "", errors.New("no folder for the cache: HOME is not set and this user has no home; set DOVETAIL_CACHE")
		}
		home = me.HomeDir
	}
	return filepath.Join(home, ".cache", "dovetail"), nil
}

// Root is the folder of the project's go.mod, looked for upwards from the
// working folder.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "hack", "tools")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not inside the project (no folder above it has hack/tools)", dir)
		}
	}
}

// Path is the path of a tool's binary, built now if it was not before. Progress
// goes to log.
func Path(ctx context.Context, name string, log io.Writer) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	module := filepath.Join(root, "hack", "tools", name)
	pkg, version, err := pinned(ctx, module)
	if err != nil {
		return "", err
	}
	key, err := fingerprint(ctx, module)
	if err != nil {
		return "", err
	}
	cache, err := Cache()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(cache, "tools-"+key, "bin", name)
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if err := build(ctx, module, pkg, name+" "+version, binary, log); err != nil {
		return "", fmt.Errorf("build %s %s: %w", name, version, err)
	}
	return binary, nil
}

// pinned reads which package a tool's module names as its tool, and at which
// version.
func pinned(ctx context.Context, module string) (pkg, version string, err error) {
	if _, err := os.Stat(filepath.Join(module, "go.mod")); err != nil {
		known, _ := filepath.Glob(filepath.Join(filepath.Dir(module), "*", "go.mod"))
		names := make([]string, 0, len(known))
		for _, k := range known {
			names = append(names, filepath.Base(filepath.Dir(k)))
		}
		return "", "", fmt.Errorf("%s is no tool of this project; there are %s", filepath.Base(module), strings.Join(names, ", "))
	}
	out, err := output(ctx, module, "mod", "edit", "-json")
	if err != nil {
		return "", "", err
	}
	var mod struct {
		Tool    []struct{ Path string }
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return "", "", err
	}
	if len(mod.Tool) != 1 {
		return "", "", fmt.Errorf("%s/go.mod has %d tool lines, not one", module, len(mod.Tool))
	}
	pkg = mod.Tool[0].Path
	for _, r := range mod.Require {
		if strings.HasPrefix(pkg, r.Path+"/") {
			return pkg, r.Version, nil
		}
	}
	return "", "", fmt.Errorf("%s/go.mod requires no module that has %s", module, pkg)
}

// fingerprint differs whenever the built binary could.
func fingerprint(ctx context.Context, module string) (string, error) {
	sum := sha256.New()
	goVersion, err := output(ctx, module, "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	fmt.Fprintf(sum, "%s %s/%s\n", goVersion, runtime.GOOS, runtime.GOARCH)
	fmt.Fprintf(sum, "%q%s\n", cgo[filepath.Base(module)], static)
	for _, f := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(module, f))
		if err != nil {
			return "", err
		}
		sum.Write(b)
	}
	return fmt.Sprintf("%.6x", sum.Sum(nil)), nil
}

// build compiles beside the target and renames, so that of two builds at once
// both end well.
func build(ctx context.Context, module, pkg, title, binary string, log io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return err
	}
	fmt.Fprintf(log, "building %s (once; it takes some minutes where nothing is cached)\n", title)
	began := time.Now()
	flags, ldflags, env := []string{}, "-s -w", "CGO_ENABLED=0"
	if extra, ok := cgo[filepath.Base(module)]; ok {
		flags, ldflags, env = extra, ldflags+static, "CGO_ENABLED=1"
	}
	list, err := output(ctx, module, "list", "-deps", pkg)
	if err != nil {
		return err
	}
	total := strings.Count(string(list), "\n")

	partial := fmt.Sprintf("%s.%d", binary, os.Getpid())
	defer func() { _ = os.Remove(partial) }()
	cmd := command(ctx, module, slices.Concat([]string{"build", "-v", "-ldflags", ldflags}, flags, []string{"-o", partial, pkg})...)
	cmd.Env = append(cmd.Env, env)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var compiled atomic.Int64
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(15 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				fmt.Fprintf(log, "  %s: %d packages compiled of at most %d, %s\n", title, compiled.Load(), total, time.Since(began).Round(time.Second))
			}
		}
	}()
	var said []string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if line := lines.Text(); strings.ContainsAny(line, " :#") {
			said = append(said, line)
			continue
		}
		compiled.Add(1)
	}
	err = cmd.Wait()
	close(done)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, strings.Join(said, "\n"))
	}
	if err := os.Rename(partial, binary); err != nil {
		return err
	}
	fmt.Fprintf(log, "built %s in %s\n", title, time.Since(began).Round(time.Second))
	return nil
}

func output(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := command(ctx, dir, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, stderr.String())
	}
	return out, nil
}

// command is a go command whose result depends on the tool's module alone.
func command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(os.Environ(), []string{
		"PWD=" + dir, "GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off",
	})
	return cmd
}
