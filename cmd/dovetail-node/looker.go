package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/host"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// looker looks at the hardware for people, beside an agent or without one.
type looker struct {
	roots
	nics              nics
	pluginDir, cdiDir string
}

// seen is the hardware as it is, and as it is published: apart from claims.
type seen struct {
	now, published machine.Machine
	// claimed is what claims have.
	claimed claim.Prepared
	// classes by name, and what they leave of what could be published.
	classes []string
	offer   *class.Offer
}

func (l *looker) addFlags(flags *pflag.FlagSet) {
	l.roots.addFlags(flags)
	l.nics.addFlags(flags)
	flags.StringVar(&l.pluginDir, "plugin-dir", fromEnvironment(pluginDirVariable, defaultPluginDir),
		"the agent's directory, whose journal tells what is there for claims (default: $"+pluginDirVariable+", or "+defaultPluginDir+")")
	flags.StringVar(&l.cdiDir, "cdi-dir", fromEnvironment(cdiDirVariable, defaultCDIDir),
		"the agent's CDI specifications, asked where its journal is damaged (default: $"+cdiDirVariable+", or "+defaultCDIDir+")")
	defaultsInText(flags, "plugin-dir", "cdi-dir")
}

// look describes the hardware, and leaves out of what is published what the journal
// of an agent says is there for claims. A node without NVIDIA's driver can have NICs.
func (l *looker) look(ctx context.Context) (seen, error) {
	adapter, _, here := l.open(func(g hardware.GPUs) hardware.GPUs { return g })
	defer func() { _ = adapter.Close() }()
	var err error
	here.NICs, err = l.nics.open(l.sysfs, fromEnvironment(processesVariable, "/proc"), l.pluginDir, func(n hardware.NICs) hardware.NICs { return n })
	if err != nil {
		return seen{}, err
	}
	what, err := l.compare(ctx, here)
	if err != nil && len(what.now.NICs) > 0 && (errors.Is(err, failure.Absent) || errors.Is(err, failure.Unreachable)) {
		what.published.Faults = append(what.published.Faults, machine.Fault{Device: "GPUs", Kind: machine.FaultDriverAbsent, Message: err.Error()})
		return what, nil
	}
	return what, err
}

// compare describes the hardware with the help of an agent's journal, where one has been
// here. One that this user cannot read is a fault of what is shown.
func (l *looker) compare(ctx context.Context, here *host.Host) (what seen, err error) {
	describe := func(ctx context.Context) (machine.Machine, error) {
		what.now, err = here.Describe(ctx)
		return what.now, err
	}
	claims, unread := l.claims(here)
	switch {
	case errors.Is(unread, fs.ErrPermission):
		what.published, err = describe(ctx)
		what.published.Faults = append(slices.Clip(what.published.Faults), machine.Fault{Device: "claims", Kind: machine.FaultUnreadable, Message: fmt.Sprintf(
			"what claims have of the GPUs and NICs is not known, and is shown as it is just now: run it as root (%v)", unread)})
		return what, err
	case unread != nil:
		return what, unread
	case claims == nil:
		what.published, err = describe(ctx)
		return what, err
	}
	what.published, _, err = claims.Unclaimed(ctx, describe)
	claims.Recall(&what.published) // NICs are there without a driver for GPUs, too
	what.claimed, unread = claims.Prepared()
	return what, cmp.Or(err, unread)
}

// claims are those of an agent's journal; nil where no agent has been here.
func (l *looker) claims(here *host.Host) (*claim.Manager, error) {
	dir := filepath.Join(l.pluginDir, "claims")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	bootID, err := here.BootID()
	if err != nil {
		return nil, fmt.Errorf("--proc-root: %w", err)
	}
	records, err := journal.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("--plugin-dir: %w", err)
	}
	specs, err := cdi.NewStore(l.cdiDir, filepath.Join(l.pluginDir, "nccl"), nil)
	if err != nil {
		return nil, fmt.Errorf("--cdi-dir: %w", err)
	}
	return claim.New(claim.Config{BootID: bootID, Journal: records, CDI: specs}), nil
}
