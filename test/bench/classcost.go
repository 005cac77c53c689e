package main

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/bench/stats"
	"github.com/dovetail-dra/dovetail/test/sched"
)

// threeClasses are an administrator's.
const threeClasses = `
- metadata: {name: small}
  spec: {shape: {mig: {memory: 9Gi}}}
- metadata: {name: shared}
  spec: {shape: {mps: {memory: 10Gi, compute: 25}}}
- metadata: {name: trainer}
  spec: {shape: {pair: {closeness: PXB}}}
`

// classCost compares decisions on a node that publishes what three classes ask for with
// those on one that publishes everything.
func classCost(ctx context.Context, m machine.Machine) (table, error) {
	var classes []v1alpha1.PartitionClass
	if err := yaml.UnmarshalStrict([]byte(threeClasses), &classes); err != nil {
		return table{}, err
	}
	wanted, err := class.WantedOn(classes, nil, m.GPUs)
	if err != nil {
		return table{}, err
	}
	offer, err := wanted.Offer(&m)
	if err != nil {
		return table{}, err
	}
	// Sizes are devices on both.
	pools := [2]catalog.Pool{catalog.Build(offer.Machine, catalog.Options{}), catalog.Build(offer.Machine, catalog.Options{Offer: offer})}
	t := table{
		title: "Scheduling with three PartitionClasses",
		made: fmt.Sprintf("The same run, and the same node: everything published (%d devices in %d slices), and what the classes small (partitions with 9Gi), shared (MPS, 10Gi and 25%%) and "+
			"trainer (pairs) ask for (%d devices in %d slices). The claims are of these classes; the two nodes take turns decision by decision.",
			len(pools[0].Devices), len(pools[0].Slices()), len(pools[1].Devices), len(pools[1].Slices())),
		columns: []string{"Claim", "Answer", "Everything, p50", "p99", "Three classes, p50", "p99", "Ratio of p50"},
	}
	for _, d := range classDecisions(m) {
		samples, err := d.inTurns(ctx, pools, classes)
		if err != nil {
			return table{}, fmt.Errorf("%s: %w", d.what, err)
		}
		all, three := samples[0], samples[1]
		t.add(d.what, d.answer(), stats.Milliseconds(all.P50()), stats.Milliseconds(all.P99()), stats.Milliseconds(three.P50()), stats.Milliseconds(three.P99()),
			fmt.Sprintf("%.2f", float64(three.P50())/float64(all.P50())))
	}
	return t, nil
}

// inTurns decides on each pool by turns.
func (d decision) inTurns(ctx context.Context, pools [2]catalog.Pool, classes []v1alpha1.PartitionClass) (samples [2]stats.Sample, err error) {
	var schedulers [2]*sched.Scheduler
	for i := range pools {
		schedulers[i] = sched.New()
		for c := range classes {
			compiled, err := class.Compile(&classes[c])
			if err != nil {
				return samples, err
			}
			schedulers[i].OfferClass(classes[c].Name, compiled.DeviceClass())
		}
		schedulers[i].Publish(node, pools[i])
		if err := d.begin(ctx, schedulers[i]); err != nil {
			return samples, err
		}
	}
	for range schedulingRuns {
		for i := range schedulers {
			took, err := d.once(ctx, schedulers[i])
			if err != nil {
				return samples, err
			}
			samples[i] = append(samples[i], took)
		}
	}
	return samples, nil
}

func classDecisions(m machine.Machine) []decision {
	of := func(name string, count int64, selectors ...string) resourceapi.DeviceRequest {
		r := sched.RequestOf("r", name, selectors...)
		r.Exactly.Count = count
		return r
	}
	// So many small partitions on each of the first GPUs.
	on := func(gpus int, each int64) (out []*resourceapi.ResourceClaim) {
		for i := range m.GPUs[:gpus] {
			parent := fmt.Sprintf("device.attributes[%q].parentUUID == %q", catalog.DriverName, m.GPUs[i].UUID)
			out = append(out, sched.Claim(fmt.Sprint("out-", i), of("small", each, parent)))
		}
		return out
	}
	claim := sched.Claim
	return []decision{
		{what: "small", claim: claim("c", of("small", 1)), fits: true},
		{what: "small, seven GPUs full", out: on(gpus-1, 7), claim: claim("c", of("small", 1)), fits: true},
		{what: "small, all GPUs full", out: on(gpus, 7), claim: claim("c", of("small", 1))},
		{what: "8 × small, seven left", out: on(gpus-1, 7), claim: claim("c", of("small", 8))},
		{what: "shared", claim: claim("c", of("shared", 1)), fits: true},
		{what: "shared, small out on every GPU", out: on(gpus, 1), claim: claim("c", of("shared", 1))},
		{what: "trainer", claim: claim("c", of("trainer", 1)), fits: true},
		{what: "trainer, small out on every GPU", out: on(gpus, 1), claim: claim("c", of("trainer", 1))},
		{what: "whole GPU, small out on seven others", out: on(gpus-1, 1), claim: claim("c", sched.Request("r", machine.KindGPU)), fits: true},
	}
}
