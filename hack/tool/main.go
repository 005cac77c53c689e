// Command tool runs one of the pinned tools, building it first if need be.
//
//	go run ./hack/tool helm template deployments/helm/dovetail
//	go run ./hack/tool -path helm          # print where the binary is
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/dovetail-dra/dovetail/hack/toolbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "tool:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	only := len(args) > 0 && args[0] == "-path"
	if only {
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("usage: tool [-path] NAME [ARGUMENT...]")
	}
	path, err := toolbox.Path(ctx, args[0], os.Stderr)
	if err != nil {
		return err
	}
	if only {
		fmt.Println(path)
		return nil
	}
	cmd := exec.CommandContext(ctx, path, args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
