package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// TestMain is a program that waits for a signal, where it is called as that.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "wait" {
		Main(New("waiter", "", &cobra.Command{Use: "wait", RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), "waits")
			<-cmd.Context().Done()
			return errors.New("ended")
		}}))
	}
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	broken := errors.New("is broken")
	tests := []struct {
		name string
		err  error
		ends []error
		code int
		says string
	}{
		{name: "well"},
		{name: "fails", err: broken, code: 1, says: "dovetail-x: is broken\n"},
		{name: "ends as it is meant to", err: fmt.Errorf("wait: %w", context.Canceled), ends: []error{context.Canceled}},
		{name: "ends before it is done", err: context.Canceled, code: 1, says: "dovetail-x: context canceled\n"},
		{name: "fails otherwise", err: broken, ends: []error{context.Canceled}, code: 1, says: "dovetail-x: is broken\n"},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			root := New("dovetail-x", "", &cobra.Command{Use: "do", RunE: func(*cobra.Command, []string) error { return tt.err }})
			var out, says bytes.Buffer
			root.SetOut(&out)
			root.SetErr(&says)
			root.SetArgs([]string{"do"})
			if code := Run(t.Context(), root, tt.ends...); code != tt.code || says.String() != tt.says || out.Len() > 0 {
				t.Errorf("code %d, says %q, prints %q", code, says.String(), out.String())
			}
		})
	}
}

// TestMisused: who does not know a command line is told where it is explained.
func TestMisused(t *testing.T) {
	for args, want := range map[string]string{
		"do --fast":   "dovetail-x: unknown flag: --fast: see dovetail-x do --help\n",
		"do this":     "dovetail-x: unknown command \"this\" for \"dovetail-x do\": see dovetail-x do --help\n",
		"--fast":      "dovetail-x: unknown flag: --fast: see dovetail-x --help\n",
		"fly":         "dovetail-x: unknown command \"fly\" for \"dovetail-x\": see dovetail-x --help\n",
		"du":          "dovetail-x: unknown command \"du\" for \"dovetail-x\": see dovetail-x --help\n\nDid you mean this?\n\tdo\n",
		"do --number": "dovetail-x: flag needs an argument: --number: see dovetail-x do --help\n",
	} {
		do := &cobra.Command{Use: "do", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return nil }}
		do.Flags().Int("number", 0, "")
		root := New("dovetail-x", "", do)
		var says bytes.Buffer
		root.SetErr(&says)
		root.SetArgs(strings.Fields(args))
		if code := Run(t.Context(), root); code != 1 || says.String() != want {
			t.Errorf("%s: code %d, says %q, want %q", args, code, says.String(), want)
		}
	}
}

func TestVersion(t *testing.T) {
	root := New("dovetail-x", "", &cobra.Command{Use: "do"})
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"--version"})
	if code := Run(t.Context(), root); code != 0 || out.String() != "dovetail-x version "+Version+"\n" {
		t.Errorf("code %d, prints %q", code, out.String())
	}
}

// TestSignals end the program's context, and the program says what it makes of that.
func TestSignals(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		program := exec.CommandContext(t.Context(), self, "wait")
		var says bytes.Buffer
		program.Stderr = &says
		out, err := program.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, len("waits\n"))); err != nil {
			t.Fatal(err)
		}
		if err := program.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = program.Wait()
		if code := program.ProcessState.ExitCode(); code != 1 || says.String() != "waiter: ended\n" {
			t.Errorf("%v: code %d, says %q", signal, code, says.String())
		}
	}
}
