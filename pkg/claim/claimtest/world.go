// Package claimtest has all that a claim's life touches, in one directory: a
// simulated machine, the journal, the CDI directory, and the API server's claims.
// It can be opened again by another process, which crash tests do.
package claimtest

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/lock"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/description"
)

// Pool is the name of the world's one node.
const Pool = "node-1"

// World is one node and its claims.
type World struct {
	Dir     string
	Machine *simulator.Machine
	// GPUs may be replaced before Manager is called.
	GPUs hardware.GPUs
	// Sharing, NICs and Edits likewise.
	Sharing hardware.Sharing
	NICs    hardware.NICs
	Edits   cdi.Edits
	// CgroupV2 is as machine.Machine has it.
	CgroupV2 bool
	// Network is the administrator's word.
	Network machine.Network
	// InUse has the names of claims that the kubelet's Pods have.
	InUse map[string]bool
	// Waits is what managers have told of releases that had to wait.
	Waits []error
	// Holders as claim.Config has it.
	Holders func(gpu *machine.GPU, gpuInstance *int) ([]string, error)
	// Remade are the partitions that managers have told to be made again.
	Remade []string
	// BusyPatience as claim.Config has it.
	BusyPatience time.Duration
	// Damage is what managers have told of records.
	Damage []error
	// Crowded is a world with another agent.
	Crowded bool

	untouched *machine.Machine                    // without any claim; nil where claims came before
	seen      *machine.Machine                    // by the latest manager
	homes     map[machine.Address]machine.NICHome // of NICs and VFs, without any claim
}

// Create makes a world in dir with a machine of demo/machines.
func Create(dir, machineName string) (*World, error) {
	text, err := machines.Description(machineName)
	if err != nil {
		return nil, err
	}
	spec, err := description.Parse(text)
	if err != nil {
		return nil, err
	}
	return CreateOf(dir, spec)
}

// CreateOf makes a world in dir with any machine.
func CreateOf(dir string, spec simulator.Spec) (*World, error) {
	for _, sub := range []string{"api", "machine"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	if _, _, err := simulator.Create(filepath.Join(dir, "machine"), spec); err != nil {
		return nil, err
	}
	w, err := Open(dir)
	if err != nil {
		return nil, err
	}
	if w.untouched, err = w.Describe(context.Background()); err != nil {
		return nil, err
	}
	return w, w.SettleNICs(context.Background())
}

// Open opens a world that Create has made.
func Open(dir string) (*World, error) {
	m, err := simulator.Open(filepath.Join(dir, "machine"))
	if err != nil {
		return nil, err
	}
	return &World{Dir: dir, Machine: m, GPUs: m.GPUs(), Sharing: m.Sharing(), NICs: m.NICs(), Edits: edits{}}, nil
}

// Copy is a world in dir that begins as this one is now.
func (w *World) Copy(dir string) (*World, error) {
	if err := os.CopyFS(dir, os.DirFS(w.Dir)); err != nil {
		return nil, err
	}
	c, err := Open(dir)
	if err == nil {
		c.untouched, c.homes, c.Network = w.untouched, w.homes, w.Network
	}
	return c, err
}

// Manager is a fresh one, as after a start of the agent. It has recovered already.
func (w *World) Manager(ctx context.Context) (*claim.Manager, []claim.Problem, error) {
	m, err := w.manager()
	if err != nil {
		return nil, nil, err
	}
	if err := w.Look(ctx, m); err != nil {
		return nil, nil, err
	}
	problems, err := m.Recover(ctx)
	return m, problems, err
}

func (w *World) manager() (*claim.Manager, error) {
	records, err := journal.Open(w.path("claims"))
	if err != nil {
		return nil, err
	}
	store, err := cdi.NewStore(w.path("cdi"), w.path("nccl"), w.Edits)
	if err != nil {
		return nil, err
	}
	state, err := w.Machine.State()
	if err != nil {
		return nil, err
	}
	return claim.New(claim.Config{
		BootID: state.BootID, Alone: func() bool { return !w.Crowded }, InUse: w.inUse,
		Damaged:      func(_ string, err error) { w.Damage = append(w.Damage, err) },
		Remade:       func(c journal.Claim, device string) { w.Remade = append(w.Remade, c.Name+" "+device) },
		BusyPatience: w.BusyPatience, Holders: w.Holders, Waiting: func(_ journal.Claim, err error) { w.Waits = append(w.Waits, err) },
		Pool: Pool, Machine: func() *machine.Machine { return w.seen }, GPUs: w.GPUs, Sharing: w.Sharing, NICs: w.NICs,
		Journal: records, CDI: store, Locks: lock.File(w.path("lock")), Live: w.live,
	}), nil
}

// Look has the manager see the machine as it is now.
func (w *World) Look(ctx context.Context, m *claim.Manager) error {
	now, err := w.unclaimed(ctx, m)
	if err == nil {
		w.seen = now
	}
	return err
}

func (w *World) unclaimed(ctx context.Context, m *claim.Manager) (*machine.Machine, error) {
	now, again, err := m.Unclaimed(ctx, func(ctx context.Context) (machine.Machine, error) {
		described, err := w.Describe(ctx)
		if err != nil {
			return machine.Machine{}, err
		}
		return *described, nil
	})
	if err == nil && again {
		return w.unclaimed(ctx, m)
	}
	m.Recall(&now)
	return &now, err
}

// Settle takes the machine as it is now, apart from what is on record, for the one
// without any claim: after somebody has changed it by hand. Where GPUs are named, by
// UUID, the others are left as they were.
func (w *World) Settle(ctx context.Context, gpus ...string) error {
	m, err := w.manager()
	if err != nil {
		return err
	}
	now, err := w.unclaimed(ctx, m)
	if err != nil {
		return err
	}
	if len(gpus) == 0 {
		w.untouched = now
	}
	for _, uuid := range gpus {
		before, wasThere := w.untouched.GPU(uuid)
		if gpu, isThere := now.GPU(uuid); wasThere && isThere {
			*before = *gpu
		}
	}
	return nil
}

// Describe is the machine as it is now.
func (w *World) Describe(ctx context.Context) (*machine.Machine, error) {
	description, err := w.GPUs.Describe(ctx)
	if err != nil {
		return nil, err
	}
	state, err := w.Machine.State()
	if err != nil {
		return nil, err
	}
	now := &machine.Machine{
		BootID: state.BootID, CgroupV2: w.CgroupV2, Driver: description.Driver, GPUs: description.GPUs, Faults: description.Faults, Network: w.Network,
	}
	for i := range now.GPUs {
		for j := range state.GPUs {
			if gpu := state.GPU(j); gpu.Spec.UUID == now.GPUs[i].UUID {
				now.GPUs[i].Location = gpu.Location()
			}
		}
	}
	nics, err := w.NICs.DescribeNICs(ctx)
	if err != nil {
		return nil, err
	}
	now.NICs, now.RDMANodes, now.RDMAExclusive = nics.NICs, nics.RDMANodes, nics.RDMAExclusive
	now.Faults = append(now.Faults, nics.Faults...)
	return now, nil
}

func (w *World) path(elements ...string) string {
	return filepath.Join(append([]string{w.Dir}, elements...)...)
}
