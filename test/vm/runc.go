package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/dovetail-dra/dovetail/test/vm/internal/debian"
)

// runc is the path of the container runtime that the local cluster's nodes have. The
// cluster's launcher, which is a module of its own, builds it where it is not in the cache.
func runc(ctx context.Context, log io.Writer) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "run", "-C", "test/cluster", "-buildvcs=false", ".", "build", "runc")
	var said bytes.Buffer
	cmd.Stderr = io.MultiWriter(log, &said)
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("runc, as test/cluster builds it: %w: %s: %w", err, lastLine(said.String()), debian.ErrUnavailable)
	}
	return strings.TrimSpace(string(path)), nil
}

// lastLine leaves out what the go command says of the exit code.
func lastLine(text string) string {
	last := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "exit status") {
			last = line
		}
	}
	return last
}
