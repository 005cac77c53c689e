package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
)

func TestHold(t *testing.T) {
	root := t.TempDir()
	if _, err := run("create", "static-mig", "--root", root); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	cmd := newRoot()
	cmd.SetOut(writer)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"hold", "0", "--instance", "1", "--root", root})
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	if line, err := bufio.NewReader(reader).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := run("mig", "destroy", "0", "1", "--root", root); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("destroyed while it is held: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := run("mig", "destroy", "0", "1", "--root", root); err != nil {
		t.Errorf("after the holder has gone: %v", err)
	}
}
