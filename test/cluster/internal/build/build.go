package build

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/image"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
	"github.com/dovetail-dra/dovetail/test/cluster/modules"
)

const commonFlags = "-mod=readonly -buildvcs=false -trimpath"

// step is one thing to make: a file, put in place when it is whole.
type step struct {
	name string
	file string
	make func(ctx context.Context, tmp string) error
}

// Build makes what is missing and returns the cache: all, or only the programs
// that are named. Progress goes to out. A build that is cut short goes on where it was;
// what was built by name is not built again with the others. Two at once take turns.
func Build(ctx context.Context, out io.Writer, only ...string) (Cache, error) {
	c, err := Open()
	if err != nil {
		return c, err
	}
	steps, err := c.steps(only)
	if err != nil || c.has(steps, only) {
		return c, err
	}
	lock, err := state.LockFile(c.lock(), time.Hour, func() {
		fmt.Fprintln(out, "another launcher builds the cluster's programs; waiting for it")
	})
	if err != nil {
		return c, err
	}
	defer lock.Unlock()
	if c.has(steps, only) {
		return c, nil
	}
	if err := needPackages(ctx, out, only); err != nil {
		return c, err
	}
	fmt.Fprintf(out, "building into %s; this takes some minutes, once\n", c.Dir)
	begin := time.Now()
	for i, s := range steps {
		if err := s.run(ctx, out, fmt.Sprintf("[%d/%d]", i+1, len(steps))); err != nil {
			return c, err
		}
	}
	if err := c.tidy(); err != nil {
		return c, err
	}
	if len(only) == 0 {
		if err := os.WriteFile(c.marker(), nil, 0o644); err != nil {
			return c, err
		}
	}
	fmt.Fprintf(out, "built in %.0f s\n", time.Since(begin).Seconds())
	return c, nil
}

// has says whether nothing is left to do. Files are put in place when they are whole.
func (c Cache) has(steps []step, only []string) bool {
	missing := func(s step) bool { _, err := os.Stat(s.file); return err != nil }
	return c.Complete() || len(only) > 0 && !slices.ContainsFunc(steps, missing)
}

// tidy removes what only the build needed.
func (c Cache) tidy() error {
	leftovers := []string{filepath.Join(c.Dir, "src")}
	for _, pattern := range []string{"*/*.part-*", "*/*/*.part-*"} {
		found, err := filepath.Glob(filepath.Join(c.Dir, pattern))
		if err != nil {
			return err
		}
		leftovers = append(leftovers, found...)
	}
	for _, f := range leftovers {
		if err := os.RemoveAll(f); err != nil {
			return err
		}
	}
	return nil
}

// steps are those of the whole, or of what is named.
func (c Cache) steps(only []string) ([]step, error) {
	programs, err := Programs()
	if err != nil {
		return nil, err
	}
	var out []step
	for _, name := range only {
		if !slices.ContainsFunc(programs, func(p Program) bool { return p.Name == name }) {
			return nil, fmt.Errorf("no program %q: there are %s", name, names(programs))
		}
	}
	for _, p := range programs {
		if len(only) > 0 && !slices.Contains(only, p.Name) {
			continue
		}
		out = append(out, step{p.Name, filepath.Join(c.Bin(), p.Name), func(ctx context.Context, tmp string) error {
			return c.goBuild(ctx, p, tmp)
		}})
	}
	if len(only) > 0 {
		return out, nil
	}
	for _, i := range image.All {
		out = append(out, step{"image " + i.Name, filepath.Join(c.Images(), i.Name+".tar"), i.Build})
	}
	return out, nil
}

func names(programs []Program) string {
	var list []string
	for _, p := range programs {
		list = append(list, p.Name)
	}
	return strings.Join(list, ", ")
}

func (s step) run(ctx context.Context, out io.Writer, counter string) error {
	fmt.Fprintf(out, "%s %s … ", counter, s.name)
	if _, err := os.Stat(s.file); err == nil {
		fmt.Fprintln(out, "there already")
		return nil
	}
	begin := time.Now()
	if err := os.MkdirAll(filepath.Dir(s.file), 0o755); err != nil {
		return err
	}
	// A name of our own: a compiler that outlived its launcher may write to another.
	tmp := fmt.Sprintf("%s.part-%d", s.file, os.Getpid())
	err := s.make(ctx, tmp)
	if err == nil {
		err = os.Rename(tmp, s.file)
	}
	if err != nil {
		fmt.Fprintln(out, "failed")
		_ = os.Remove(tmp)
		return fmt.Errorf("building %s: %w", s.name, err)
	}
	fmt.Fprintf(out, "%.0f s\n", time.Since(begin).Seconds())
	return nil
}

func (c Cache) writeModule(name string) error {
	m, err := modules.Get(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.source(name), 0o755); err != nil {
		return err
	}
	for file, text := range map[string][]byte{"go.mod": m.Mod, "go.sum": m.Sum} {
		if err := os.WriteFile(filepath.Join(c.source(name), file), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (c Cache) goBuild(ctx context.Context, p Program, file string) error {
	if err := c.writeModule(p.Module); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", p.Tags, "-ldflags", p.LDFlags, "-o", file, p.Package)
	cgo := "0"
	if p.Cgo {
		cgo = "1"
	}
	cmd.Dir, cmd.Env = c.source(p.Module), goEnv(cgo)
	return runQuietly(cmd)
}

// goEnv is the caller's environment without what would change the outcome.
func goEnv(cgo string) []string {
	var env []string
	for _, kv := range os.Environ() {
		switch k, _, _ := strings.Cut(kv, "="); k {
		case "GOFLAGS", "GOWORK", "GOOS", "GOARCH", "GO111MODULE", "GOEXPERIMENT", "CGO_ENABLED", "HOME":
		default:
			env = append(env, kv)
		}
	}
	return append(env, "CGO_ENABLED="+cgo, "GOWORK=off", "GOFLAGS="+commonFlags, "HOME="+home())
}

// runQuietly runs a command that ends with us and shows its output if it fails.
func runQuietly(cmd *exec.Cmd) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // whose end Pdeathsig is about
	defer runtime.UnlockOSThread()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(out.String())
		if len(text) > 4000 {
			text = "…" + text[len(text)-4000:]
		}
		return fmt.Errorf("%s: %w\n%s", cmd.Args[0], err, text)
	}
	return nil
}
