package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dovetail-dra/dovetail/test/vm/internal/kit"
	"github.com/dovetail-dra/dovetail/test/vm/internal/ramdisk"
)

const guestPackage = "github.com/dovetail-dra/dovetail/test/vm/guest"

// kernelModules are those that the guest loads, besides fakeroce. rdma_rxe does
// not say that it needs crc32, which is therefore first.
var kernelModules = []string{
	"crc32_generic", "rdma_rxe", "ib_uverbs", "rdma_ucm",
	"igb", "igbvf", "vmxnet3", "e1000e", "pci-stub",
	"veth", "dummy numdummies=0", "bonding max_bonds=0", "8021q", "macvlan",
}

// writeDisk builds what runs in the guest and makes its root file system.
func (o options) writeDisk(ctx context.Context, k kit.Kit, to string) error {
	fakeroce, err := k.Module(ctx, os.Stderr, "test/vm/fakeroce/fakeroce.c")
	if err != nil {
		return err
	}
	runtime, err := runc(ctx, os.Stderr)
	if err != nil {
		return err
	}
	built, err := os.MkdirTemp("", "dovetail-vm-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(built) }()
	at := func(name string) string { return filepath.Join(built, name) }
	const strip = "-ldflags=-s -w"
	for _, build := range []struct {
		cgo  string
		args []string
	}{
		{"CGO_ENABLED=0", []string{"build", strip, "-o", at("init"), "./test/vm/init"}},
		{"CGO_ENABLED=0", []string{"build", strip, "-o", at("client"), "./cmd/dovetail-sim-tools"}},
		{"CGO_ENABLED=1", []string{"test", "-c", strip, "-o", at("tests"), "./test/vm/guest"}},
		{"CGO_ENABLED=1", []string{"build", strip, "-o", at("dovetail-hook"), "./cmd/dovetail-hook"}},
		{"CGO_ENABLED=1", []string{"build", strip, "-buildmode=c-shared", "-o", at("libnvidia-ml.so.1"), "./cmd/libnvidia-ml"}},
	} {
		cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{build.args[0], "-buildvcs=false", "-trimpath"}, build.args[1:])...)
		cmd.Env = append(os.Environ(), build.cgo)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", strings.Join(build.args, " "), err, out)
		}
	}
	d := ramdisk.New()
	for name, from := range map[string]string{"init": at("init"), ramdisk.Library: at("libnvidia-ml.so.1"), ramdisk.ContainerRoot + "/" + ramdisk.ContainerProgram: at("client")} {
		if err := d.AddProgram(name, from); err != nil {
			return err
		}
	}
	for name, from := range map[string]string{"tests": at("tests"), "bin/dovetail-hook": at("dovetail-hook"), "bin/runc": runtime} {
		if err := d.AddLinked(name, from); err != nil {
			return err
		}
	}
	if err := d.AddModules(ctx, k.Modules(), kernelModules, fakeroce); err != nil {
		return err
	}
	d.Add("arguments", 0o644, []byte(strings.Join(o.testArguments(), "\n")+"\n"))
	return d.Write(to)
}

// testArguments are those of the tests' binary. Its own limit is before the
// machine's, so that a test that hangs is named and its stacks are shown.
func (o options) testArguments() []string {
	verbose := "-test.v"
	if o.json {
		verbose += "=test2json"
	}
	const margin = 30 * time.Second
	return []string{verbose, "-test.run=" + o.run, "-test.timeout=" + (o.limit - margin).String(), "-test.paniconexit0"}
}
