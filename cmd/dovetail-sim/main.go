// Command dovetail-sim makes simulated machines and lets things go wrong with
// them, while the driver uses them.
package main

import "github.com/dovetail-dra/dovetail/pkg/command"

func main() { command.Main(newRoot()) }
