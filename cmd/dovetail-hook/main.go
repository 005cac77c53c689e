// Command dovetail-hook is what the container runtime runs for containers with devices of
// Dovetail's, as their CDI specifications say. It runs on the host. Where it fails, the
// container does not start, and its message is in the Pod's events.
package main

import (
	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/pkg/command"
)

// A container does not start without what a signal has kept from it.
func main() { command.Main(newRoot(host)) }

func newRoot(r roots) *cobra.Command {
	return command.New("dovetail-hook", "Prepares containers, as a hook of the container runtime (OCI)", newMemoryLimit(r), newNIC(r))
}
