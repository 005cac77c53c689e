// Command dovetail-sim makes simulated machines and lets things go wrong with
// them, while the driver uses them.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "dovetail-sim:", err)
		os.Exit(1)
	}
}
