// Command vm runs the tests in test/vm/guest on a real kernel in a virtual machine:
// NICs with RDMA and SR-IOV, PCI Express switches, NUMA nodes. Nothing is
// installed, and KVM is not used. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dovetail-dra/dovetail/test/vm/internal/debian"
)

// notHere is the exit code where this machine cannot have the virtual one. The
// last line on standard error says why.
const notHere = 3

func main() {
	var o options
	flag.StringVar(&o.run, "run", "", "only the tests that match, as for go test")
	flag.BoolVar(&o.json, "json", false, "print what go test -json would")
	flag.DurationVar(&o.limit, "limit", 8*time.Minute, "end the machine when it has run this long; it is then started once more")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := o.main(ctx)
	interrupted := ctx.Err() != nil
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
		code = 1
		if errors.Is(err, debian.ErrUnavailable) && !interrupted {
			code = notHere
		}
	}
	os.Exit(code)
}
