// Package command is what Dovetail's programs have in common on the command line: a
// version, how a signal ends them, and what they say and return where they fail.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Version is set by the build.
var Version = "dev"

// New is a program by its name. Run says what went wrong, without the usage.
func New(name, short string, subcommands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use: name, Short: short, Version: Version,
		SilenceUsage: true, SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &misused{err} })
	root.AddCommand(subcommands...)
	return root
}

// misused is a command line that the program does not understand.
type misused struct{ error }

// words are what there is to say of an error: of a command line that is not understood also
// which help to ask for.
func words(failed *cobra.Command, err error) string {
	var wrong *misused
	if !errors.As(err, &wrong) && !strings.HasPrefix(err.Error(), "unknown command ") { // cobra's, of which there is no type
		return err.Error()
	}
	first, more, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return strings.TrimSpace(fmt.Sprintf("%s: see %s --help\n%s", first, failed.CommandPath(), more))
}

// Main runs a program and ends the process. SIGINT and SIGTERM end the program's context.
// An error that is one of ends is how the program is meant to end, as context.Canceled is
// for one that runs until a signal.
func Main(root *cobra.Command, ends ...error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := Run(ctx, root, ends...)
	stop()
	os.Exit(code)
}

// Run is Main without the process: it says what went wrong, and returns the exit code.
func Run(ctx context.Context, root *cobra.Command, ends ...error) int {
	failed, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	for _, end := range ends {
		if errors.Is(err, end) {
			return 0
		}
	}
	fmt.Fprintln(root.ErrOrStderr(), root.Name()+":", words(failed, err))
	return 1
}
