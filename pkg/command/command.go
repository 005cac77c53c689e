// Package command is what Dovetail's programs have in common on the command line: a
// version, how a signal ends them, and what they say and return where they fail.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
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
	root.AddCommand(subcommands...)
	return root
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
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	for _, end := range ends {
		if errors.Is(err, end) {
			return 0
		}
	}
	fmt.Fprintln(root.ErrOrStderr(), root.Name()+":", err)
	return 1
}
