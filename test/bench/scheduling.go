package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/hardware/host"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/bench/stats"
	"github.com/dovetail-dra/dovetail/test/sched"
)

const (
	schedulingRuns = 50
	// schedulingPatience ends a row of slow decisions early, after three at least.
	schedulingPatience = 2 * time.Second
	// schedulingLimit is what the scheduler gives the allocator for a node.
	schedulingLimit = 10 * time.Second
)

// decision is a claim and what is out already.
type decision struct {
	what  string
	out   []*resourceapi.ResourceClaim
	claim *resourceapi.ResourceClaim
	fits  bool
}

// scheduling measures what the scheduler needs to decide on one node with all
// partitions published.
func (b *bench) scheduling(ctx context.Context) ([]table, error) {
	described, err := b.described(ctx, "dgx-h100")
	if err != nil {
		return nil, err
	}
	pool := catalog.Build(described, catalog.Options{})
	partitions := table{
		title: "Scheduling on a DGX H100 with all partitions published",
		made: fmt.Sprintf("`bin/bench -only scheduling`: the scheduler's own allocator library with the features of 1.37 (`test/sched`), one node of %d devices in %d slices, "+
			"median and p99 of %d decisions (of as many as took 2 s, where they are slow). A cluster pays this for each node that the scheduler looks at. The scheduler gives up a node, and the Pod's turn, after 10 s.",
			len(pool.Devices), len(pool.Slices()), schedulingRuns),
	}
	pairs := table{
		title: "Scheduling of GPUs with their NICs, on the same node",
		made: "The same run. A pair is one device. Apart: a claim of GPUs and NICs, each two of which a `matchAttribute` on `resource.kubernetes.io/pcieRoot` keeps on one root, " +
			"which is how it has to be said where GPUs and NICs are devices of their own.",
	}
	if err := partitions.decide(ctx, pool, decisions(described)); err != nil {
		return nil, err
	}
	if err := pairs.decide(ctx, pool, pairDecisions()); err != nil {
		return nil, err
	}
	classes, err := classCost(ctx, described)
	return []table{partitions, pairs, classes}, err
}

// described is a machine as an agent on it sees it.
func (b *bench) described(ctx context.Context, name string) (machine.Machine, error) {
	m, err := b.machine(name)
	if err != nil {
		return machine.Machine{}, err
	}
	here := host.New(m.GPUs(), filepath.Join(m.Root(), "sys"), filepath.Join(m.Root(), "proc"))
	here.NICs = m.NICs()
	return here.Describe(ctx)
}

// decide fills the table with what is decided on a node.
func (t *table) decide(ctx context.Context, pool catalog.Pool, decisions []decision) error {
	t.columns = []string{"Claim", "Answer", "p50", "p99"}
	for _, d := range decisions {
		sample, err := d.measure(ctx, pool)
		if err != nil {
			return fmt.Errorf("%s: %w", d.what, err)
		}
		if len(sample) == 0 {
			t.add(d.what, d.answer(), "given up after 10 s", "")
			continue
		}
		t.add(d.what, d.answer(), stats.Milliseconds(sample.P50()), stats.Milliseconds(sample.P99()))
	}
	return nil
}

// measure decides the same again and again. The sample is empty where the time limit
// was reached.
func (d decision) measure(ctx context.Context, pool catalog.Pool) (stats.Sample, error) {
	s := sched.New()
	s.Publish(node, pool)
	if err := d.begin(ctx, s); err != nil {
		return nil, err
	}
	var sample stats.Sample
	for first := time.Now(); len(sample) < schedulingRuns && (len(sample) < 3 || time.Since(first) < schedulingPatience); {
		took, err := d.once(ctx, s)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		sample = append(sample, took)
	}
	return sample, nil
}

// begin allocates what is out.
func (d decision) begin(ctx context.Context, s *sched.Scheduler) error {
	for _, c := range d.out {
		if where, err := s.Allocate(ctx, c.DeepCopy()); err != nil || where == "" {
			return join(err, fmt.Errorf("claim %s, which is to be out already, is not", c.Name))
		}
	}
	return nil
}

// once decides, and takes it back.
func (d decision) once(ctx context.Context, s *sched.Scheduler) (time.Duration, error) {
	limited, cancel := context.WithTimeout(ctx, schedulingLimit)
	defer cancel()
	begin := time.Now()
	fits, err := s.AllocateOn(limited, node, d.claim)
	took := time.Since(begin)
	if err != nil || fits != d.fits {
		return 0, join(err, fmt.Errorf("fits: %v", fits))
	}
	s.Release(d.claim)
	return took, nil
}

// answer in words.
func (d decision) answer() string {
	if d.fits {
		return "fits"
	}
	return "does not fit"
}

func decisions(m machine.Machine) []decision {
	of := func(profile string, count int64) resourceapi.DeviceRequest {
		r := sched.Request("p", machine.KindMIG, sched.Profile(profile))
		r.Exactly.Count = count
		return r
	}
	whole := func(count int64) resourceapi.DeviceRequest {
		r := sched.Request("g", machine.KindGPU)
		r.Exactly.Count = count
		return r
	}
	// A partition of the profile on each of the first GPUs.
	on := func(profile string, gpus int) (out []*resourceapi.ResourceClaim) {
		for i := range m.GPUs[:gpus] {
			parent := fmt.Sprintf("device.attributes[%q].parentUUID == %q", catalog.DriverName, m.GPUs[i].UUID)
			out = append(out, sched.Claim(fmt.Sprint("out-", i), sched.Request("p", machine.KindMIG, sched.Profile(profile), parent)))
		}
		return out
	}
	claim := sched.Claim
	return []decision{
		{what: "1g", claim: claim("c", of("1g.10gb", 1)), fits: true},
		{what: "1g, where seven GPUs are full", out: on("7g.80gb", gpus-1), claim: claim("c", of("1g.10gb", 1)), fits: true},
		{what: "at least 15Gi", claim: claim("c", sched.Request("p", machine.KindMIG, sched.AtLeast("15Gi"))), fits: true},
		{what: "7 × 1g", claim: claim("c", of("1g.10gb", 7)), fits: true},
		{what: "7 × 1g of one GPU (`matchAttribute`), 1g out on each of seven others", out: on("1g.10gb", gpus-1), claim: sched.Match(claim("c", of("1g.10gb", 7)), "parentUUID"), fits: true},
		{what: "whole GPU", claim: claim("c", whole(1)), fits: true},
		{what: "whole GPU, 1g out on seven others", out: on("1g.10gb", gpus-1), claim: claim("c", whole(1)), fits: true},
		{what: "1g, all GPUs full", out: on("7g.80gb", gpus), claim: claim("c", of("1g.10gb", 1))},
		{what: "whole GPU, 1g out on every one", out: on("1g.10gb", gpus), claim: claim("c", whole(1))},
		{what: "7g, 1g out on every one", out: on("1g.10gb", gpus), claim: claim("c", of("7g.80gb", 1))},
		{what: "8 whole GPUs, 1g out on one", out: on("1g.10gb", 1), claim: claim("c", whole(gpus))},
		{what: "8 × 1g, seven slices left", out: on("7g.80gb", gpus-1), claim: claim("c", of("1g.10gb", 8))},
		{what: "3 × 3g, one GPU left", out: on("7g.80gb", gpus-1), claim: claim("c", of("3g.40gb", 3))},
		{what: "9 × 4g on eight GPUs", claim: claim("c", of("4g.40gb", 9))},
		{what: "17 × 3g on eight GPUs", claim: claim("c", of("3g.40gb", 17))},
		{what: "8 × 7g, 1g out on one", out: on("1g.10gb", 1), claim: claim("c", of("7g.80gb", gpus))},
	}
}
