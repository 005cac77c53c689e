// Command cluster runs a real Kubernetes cluster on one Linux machine, for demos
// and tests. See README.md.
package main

import (
	"os"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/cli"
)

func main() { os.Exit(cli.Main()) }
