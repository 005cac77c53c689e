// Package agent is the node's part of the driver: it publishes the hardware,
// answers the kubelet, and watches over health. It only wires other packages
// together.
package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/classwatch"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/lock"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// drainTimeout bounds how long a stop waits for calls under way: the kubelet gives
// each 45 s, Kubernetes gives the Pod 30 s by default.
const drainTimeout = 20 * time.Second

// busyPatience is how long a release waits for who has the hardware open: the kubelet
// comes back only after ten seconds or more. It leaves room in what the kubelet gives
// a call, and in drainTimeout.
const busyPatience = 10 * time.Second

// quietRelease is how long a release may wait without an event: most end in less, and
// a warning with every Pod that ends would hide those that matter.
const quietRelease = 2 * time.Second

// Agent is the node agent.
type Agent struct {
	config    Config
	observer  *observer
	claims    *claim.Manager
	status    *statusWriter
	events    *nodeEvents
	publisher *publisher
	offering  *offering
	upkeep    *upkeep
	metadata  metadataFiles
	removed   *removed
	records   *journal.Journal
	plugin    *plugin

	watchClasses func(context.Context)

	looked     chan struct{} // closed when the hardware has been looked at for the first time
	registered chan struct{} // closed when the kubelet has taken us in
	once       sync.Once
}

// New wires the agent; it changes nothing but the directories that it needs.
func New(ctx context.Context, config Config) (*Agent, error) {
	a := &Agent{config: config, looked: make(chan struct{}), registered: make(chan struct{})}
	a.observer = newObserver(func(ctx context.Context) (machine.Machine, error) {
		m, again, err := a.claims.Unclaimed(ctx, config.Describe)
		if again {
			a.observer.Look()
		}
		m.Sharing, m.Network = config.Sharing, config.Network
		return m, err
	})
	a.observer.recall = func(m *machine.Machine) bool { return a.claims.Recall(m) }
	a.observer.changed = func(before, now *machine.Machine) { a.machineChanged(ctx, before, now) }

	var err error
	a.records, err = journal.Open(filepath.Join(config.PluginDir, "claims"))
	if err != nil {
		return nil, fmt.Errorf("--plugin-dir: %w", err)
	}
	specs, err := cdi.NewStore(config.CDIDir, filepath.Join(config.PluginDir, "nccl"), config.Edits)
	if err != nil {
		return nil, fmt.Errorf("--cdi-dir: %w", err)
	}
	if a.events, err = newNodeEvents(ctx, config.Kube, config.NodeName); err != nil {
		return nil, err
	}
	locks := lock.File(filepath.Join(config.PluginDir, "lock"))
	a.claims = claim.New(claim.Config{
		Pool: config.NodeName, Machine: a.observer.Machine, GPUs: config.GPUs, Sharing: config.MPS, NICs: config.NICs,
		Journal: a.records, CDI: specs, Locks: locks,
		BootID: config.BootID, Live: a.liveClaim, InUse: podResources(config.PodResources).Has,
		Alone: (&peers{pluginDir: config.PluginDir}).Alone, Damaged: a.claimProblem, Patience: kubeletsTime,
		Holders: config.Holders, Waiting: a.events.releaseWaits, Remade: a.events.partitionRemade, BusyPatience: busyPatience, Quiet: quietRelease,
	})
	a.removed = &removed{dir: filepath.Join(config.PluginDir, "removed"), asked: make(chan struct{}, 1)}
	a.metadata = metadataFiles{pluginDir: config.PluginDir, cdiDir: config.CDIDir, recorded: onRecord(a.records), discard: a.removed.Take}
	a.upkeep = &upkeep{claims: a.claims, damaged: a.claimProblem, asked: make(chan struct{}, 1), metadata: a.metadata}
	a.status = newStatusWriter(config.Kube, config.NodeName)
	a.publisher = &publisher{
		turn: func(ctx context.Context) (func(), error) { return locks.Lock(ctx, "publisher") },
		kube: config.Kube, node: config.NodeName, first: make(chan struct{}),
		refused: func(error) { config.Metrics.PublishFailed() },
	}
	a.offering = &offering{
		prepared: a.claims.Prepared, publish: a.publisher.Publish, options: config.Catalog,
		record: func(known classwatch.Known) error { return known.Write(config.PluginDir) }, unoffered: a.events.classUnoffered,
		asked: make(chan struct{}, 1), machine: &machine.Machine{},
	}
	a.offering.known, a.watchClasses = watchClasses(config.Classes, classwatch.Node(config.Kube, config.NodeName), a.offering.Ask)
	return a, nil
}

// Run serves until ctx ends, and then lets calls under way finish. It returns nil
// where that is how it ended.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer a.events.stop()

	// What serves calls ends after the calls, not with ctx.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	web, err := startServer(a.config.HTTPAddress, a.config.Metrics, func() error { return nil }, a.ready, cancel)
	if err != nil {
		return err
	}
	defer web.stop(serving)

	var background sync.WaitGroup
	background.Go(func() { a.watchClasses(ctx) }) // before anything is published they are waited for
	if err := a.firstLook(ctx); err != nil {
		return err
	}
	problems, err := a.claims.Recover(ctx)
	if err != nil {
		return fmt.Errorf("recover claims: %w", err)
	}
	a.upkeep.tell(ctx, problems)

	a.plugin = &plugin{
		node: a.config.NodeName, claims: a.claims, observer: a.observer,
		status: a.status, metrics: a.config.Metrics, fatal: cancel, stuck: a.upkeep.Ask, offering: a.offering, metadata: a.metadata,
	}
	helper, err := a.startPlugin(serving)
	if err != nil {
		return err
	}
	defer helper.Stop()

	background.Go(func() { a.observer.run(ctx) })
	background.Go(func() {
		if err := a.publisher.run(ctx); err != nil {
			cancel(err)
		}
	})
	background.Go(func() { a.offering.run(ctx) })
	background.Go(func() { a.status.run(ctx) })
	background.Go(func() { a.watchEvents(ctx) })
	background.Go(func() { a.watchMPS(ctx) })
	background.Go(func() { a.watchNICs(ctx) })
	background.Go(func() { a.settleNICs(ctx) })
	background.Go(func() { a.upkeep.run(ctx) })
	background.Go(func() { a.removed.run(ctx) })

	<-ctx.Done()
	klog.FromContext(ctx).Info("Stopping; waiting for calls under way")
	deadline, done := context.WithTimeout(serving, drainTimeout)
	defer done()
	if err := a.plugin.calls.close(deadline); err != nil {
		klog.FromContext(ctx).Error(err, "Calls under way did not end in time; the journal has them")
	}
	if err := within(deadline, background.Wait); err != nil {
		klog.FromContext(ctx).Error(err, "Work in the background did not end in time; a GPU may hang")
	}
	if err := errors.Join(a.records.Close(), a.removed.clear()); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot remove what is of no use to the next agent")
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// within waits for f, but no longer than ctx.
func within(ctx context.Context, f func()) error {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// machineChanged passes a change on to all who care.
func (a *Agent) machineChanged(ctx context.Context, before, now *machine.Machine) {
	a.config.HardwareChanged()
	klog.FromContext(ctx).Info("The hardware is not as before", "driver", now.Driver.Version, "gpus", len(now.GPUs), "devices", len(now.Devices()), "faults", len(now.AllFaults()))
	a.events.changes(ctx, before, now)
	a.config.Metrics.Machine(now)
	a.offering.Machine(ctx, now)
	a.upkeep.Ask()
}
