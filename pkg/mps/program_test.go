package mps_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
)

// launchBy has the world launch by way of a shell script, which ends with exec "$@", and
// returns the script's path.
func (w *world) launchBy(t *testing.T, text string) string {
	t.Helper()
	w.Close()
	script := filepath.Join(t.TempDir(), "launcher")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"+text+"\nexec \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.options.Launcher = []string{script, self(t), launcher}
	w.open(t)
	return script
}

// TestCommandsWithoutLaunch: only the control daemon is launched, its commands run where
// it does, also for the next Manager; and where that cannot be, they are launched.
func TestCommandsWithoutLaunch(t *testing.T) {
	w := newWorld(t, "mps-v3")
	script := w.launchBy(t, `echo >> "$0.count"`)
	launched := func() int {
		count, err := os.ReadFile(script + ".count")
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(count, []byte("\n"))
	}
	devices := w.uuids(0)
	w.start(t, devices)
	if n := launched(); n != 1 {
		t.Errorf("%d launches for a start, want 1", n)
	}
	limits := hardware.MPSLimits{ThreadPercentage: 25, Memory: map[string]uint64{devices[0]: 1 << 30}}
	for _, c := range []struct {
		name   string
		before func()
		want   int // create, set and get; and delete
	}{
		{"at first", func() {}, 0},
		{"found again", func() { w.reopen(t) }, 0},
		{"no root", func() { w.Leave() }, 4},
	} {
		c.before()
		before := launched()
		pipe, err := w.MakeNamespace(t.Context(), devices, "a", limits)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		client := newClient(t, pipe, 0)
		if l := client.do(t, "allocate 2G"); l.Error != "CUDA_ERROR_OUT_OF_MEMORY" {
			t.Errorf("%s: the memory limit is not kept: %+v", c.name, l)
		}
		client.end()
		if err := w.RemoveNamespace(t.Context(), devices, "a"); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if n := launched() - before; n != c.want {
			t.Errorf("%s: %d launches for a namespace, want %d", c.name, n, c.want)
		}
	}
	if err := w.StopMPS(t.Context(), devices); err != nil {
		t.Error(err)
	}
	w.nothing(t)
}

// TestCommandNamed: what a program says of a command that it refuses stands in the error,
// with the command.
func TestCommandNamed(t *testing.T) {
	w := newWorld(t, "mps-v3")
	script := w.launchBy(t, `[ ! -e "$0.refuse" ] || case "$3" in *\"$(cat "$0.refuse")\"*) echo no luck; exit 1 ;; esac`)
	devices := w.uuids(0)
	pipe := w.start(t, devices).Pipe
	w.Leave()
	limits := hardware.MPSLimits{Memory: map[string]uint64{devices[0]: 1 << 30}}
	for _, verb := range []string{"create", "set", "get"} {
		if err := os.WriteFile(script+".refuse", []byte(verb), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := w.MakeNamespace(t.Context(), devices, "a", limits)
		if err == nil || !strings.Contains(err.Error(), "namespace "+verb+" a ") || !strings.Contains(err.Error(), "no luck") {
			t.Errorf("%s: %v", verb, err)
		}
		if _, err := os.Lstat(filepath.Join(pipe, "a", "control")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the namespace, which may have no limit, is there: %v", verb, err)
		}
	}
}
