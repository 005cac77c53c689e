package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Environment variables that the launcher sets for what it runs.
const (
	EnvLauncher = "DOVETAIL_CLUSTER"
	EnvName     = "DOVETAIL_CLUSTER_NAME"
)

// DefaultName is the launcher's for a cluster.
const DefaultName = "dovetail"

// Launcher runs test/cluster's program.
type Launcher struct {
	Path string // of the program
	Name string // of the cluster
	// Out gets what the program says; nil drops it.
	Out io.Writer
}

// Run runs one of the launcher's commands and returns what it printed. The error
// of one that failed has its words.
func (l Launcher) Run(ctx context.Context, args ...string) (string, error) {
	return l.run(ctx, nil, args...)
}

func (l Launcher) run(ctx context.Context, in io.Reader, args ...string) (string, error) {
	cmd := l.Command(ctx, args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &errOut
	if l.Out != nil {
		cmd.Stderr = io.MultiWriter(&errOut, l.Out)
	}
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("cluster %s: %w\n%s%s", strings.Join(args, " "), err, end(errOut.String()), end(out.String()))
	}
	return out.String(), nil
}

// end is as much of an output as somebody reads.
func end(s string) string {
	const most = 4 << 10
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("(%d bytes before)…%s", len(s)-most, s[len(s)-most:])
}

// Command is one of the launcher's commands, asked to end with ctx.
func (l Launcher) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, l.Path, append([]string{"--name", l.Name}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// Exec runs a program on a node.
func (l Launcher) Exec(ctx context.Context, node string, argv ...string) (string, error) {
	return l.Run(ctx, append([]string{"exec", node}, argv...)...)
}

// Shell runs a shell script on a node; it ends at the first command that fails.
func (l Launcher) Shell(ctx context.Context, node, script string) (string, error) {
	return l.Exec(ctx, node, "sh", "-ec", script)
}

// WriteFile writes a file on a node.
func (l Launcher) WriteFile(ctx context.Context, node, path, content string) error {
	_, err := l.run(ctx, strings.NewReader(content), "exec", node, "sh", "-ec", "cat > "+path)
	return err
}
