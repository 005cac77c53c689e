// Command dovetail-hook is what the container runtime runs for containers with devices of
// Dovetail's, as their CDI specifications say. It runs on the host. Where it fails, the
// container does not start, and its message is in the Pod's events.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := newRoot(host).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "dovetail-hook:", err)
		stop()
		os.Exit(1)
	}
}

func newRoot(r roots) *cobra.Command {
	root := &cobra.Command{
		Use:           "dovetail-hook",
		Short:         "Prepares containers, as a hook of the container runtime (OCI)",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newMemoryLimit(r), newNIC(r))
	return root
}
