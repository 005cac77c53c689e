package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/dovetail-dra/dovetail/hack/toolbox"
)

// Bring is a cluster that is to be brought up for this very program.
type Bring struct {
	Launcher
	Nodes int
	// Keep leaves the cluster up.
	Keep func(code int) bool
}

// Inside says whether this process runs within a cluster's network: by
// `cluster run`, or by Around.
func Inside() bool { return os.Getenv(EnvLauncher) != "" }

// Around brings up a new cluster, runs this program again in its network with the
// same arguments, takes the cluster down, and returns the program's exit code. A
// signal ends all that, in order.
func (b Bring) Around(ctx context.Context) (int, error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := ready(ctx); err != nil {
		return 1, err
	}
	// What an earlier run has left would only confuse.
	if _, err := b.Run(ctx, "down"); err != nil {
		return 1, err
	}
	code := 1
	defer func() {
		if b.Keep != nil && b.Keep(code) && ctx.Err() == nil {
			return
		}
		if _, err := b.Run(context.WithoutCancel(ctx), "down"); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if _, err := b.Run(ctx, "up", strconv.Itoa(b.Nodes)); err != nil {
		return code, err
	}
	var err error
	code, err = b.inside(ctx)
	return code, err
}

// Within is Around for a cluster that is up, and stays.
func (l Launcher) Within(ctx context.Context) (int, error) {
	if err := ready(ctx); err != nil {
		return 1, err
	}
	return l.inside(ctx)
}

// ready says what is missing that cannot be had within a cluster's network, which leads
// nowhere: root, and Helm, whose modules may have to be downloaded.
func ready(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("root is needed, for a cluster of namespaces, mounts and cgroups: use sudo")
	}
	_, err := toolbox.Path(ctx, "helm", os.Stderr)
	return err
}

// inside runs this program again in the cluster's network, and returns its exit code.
func (l Launcher) inside(ctx context.Context) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	cmd := l.Command(ctx, append([]string{"run", self}, os.Args[1:]...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	case err != nil:
		return 1, err
	}
	return 0, nil
}

// Root is the repository: the folder above that has go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod here or above: run this in the repository")
		}
		dir = filepath.Dir(dir)
	}
}
