package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/dovetail-dra/dovetail/hack/toolbox"
	"github.com/dovetail-dra/dovetail/test/vm/internal/boot"
	"github.com/dovetail-dra/dovetail/test/vm/internal/kit"
)

type options struct {
	run   string
	json  bool
	limit time.Duration
}

// logs is where the machine's console and what the tests said stays, in the tree.
const logs = "out/vm"

// main returns the exit code of the tests.
func (o options) main(ctx context.Context) (int, error) {
	root, err := toolbox.Root()
	if err != nil {
		return 0, err
	}
	if err := os.Chdir(root); err != nil {
		return 0, err
	}
	k, err := kit.Open(ctx, os.Stderr)
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return 0, err
	}
	disk := filepath.Join(logs, "ramdisk.gz")
	if err := o.writeDisk(ctx, k, disk); err != nil {
		return 0, err
	}
	m := boot.Machine{Kit: k, Ramdisk: disk, Logs: logs, Limit: o.limit}
	began := time.Now()
	fmt.Fprintf(os.Stderr, "starting the virtual machine (Linux %s; its console: %s/console.log)\n", k.Version, logs)
	code, err := o.try(ctx, m)
	if errors.Is(err, boot.ErrStalled) && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "%v\nstarting it once more\n", err)
		code, err = o.try(ctx, m)
	}
	if err == nil {
		fmt.Fprintf(os.Stderr, "the virtual machine ran for %s\n", time.Since(began).Round(time.Second))
	}
	return code, err
}

// try boots once. For programs the output is kept until the end, so that they see
// one whole run, and not the beginning of one that stalled; people see it at once.
func (o options) try(ctx context.Context, m boot.Machine) (int, error) {
	log, err := os.Create(filepath.Join(m.Logs, "tests.txt"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = log.Close() }()
	if !o.json {
		return m.Run(ctx, io.MultiWriter(log, os.Stdout))
	}
	events := exec.CommandContext(ctx, "go", "tool", "test2json", "-t", "-p", guestPackage)
	var kept bytes.Buffer
	events.Stdout, events.Stderr = &kept, os.Stderr
	in, err := events.StdinPipe()
	if err != nil {
		return 0, err
	}
	if err := events.Start(); err != nil {
		return 0, err
	}
	code, err := m.Run(ctx, io.MultiWriter(log, in))
	_ = in.Close()
	if waitErr := events.Wait(); err == nil && waitErr != nil {
		err = fmt.Errorf("go tool test2json: %w", waitErr)
	}
	if err == nil {
		_, err = os.Stdout.Write(kept.Bytes())
	}
	return code, err
}
