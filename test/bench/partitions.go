package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/test/bench/kubelet"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// smallest is the profile of which an H100 holds perGPU.
const (
	smallest = "1g.10gb"
	perGPU   = 7
)

// hardwareTime is about what the calls that make and destroy a partition take.
var hardwareTime = map[string]time.Duration{
	simulator.CallMakeGPUInstance:        300 * time.Millisecond,
	simulator.CallMakeComputeInstance:    150 * time.Millisecond,
	simulator.CallDestroyComputeInstance: 500 * time.Millisecond,
	simulator.CallDestroyGPUInstance:     500 * time.Millisecond,
}

// partitions measures claims of partitions: what the driver adds to the hardware's
// time, and whether GPUs wait for each other.
func (b *bench) partitions(ctx context.Context) (tables []table, err error) {
	a, err := b.dgx(ctx, "partitions")
	if err != nil {
		return nil, err
	}
	defer func() { err = join(err, a.stop()) }()
	before, err := b.slices(ctx)
	if err != nil {
		return nil, err
	}
	byGPU, err := smallestOf(before)
	if err != nil {
		return nil, err
	}
	cost, err := b.partitionCost(ctx, a, byGPU)
	if err != nil {
		return nil, err
	}
	side, err := b.sideBySide(ctx, a, byGPU)
	if err != nil {
		return nil, err
	}
	if err := harness.Pass(ctx, afterRestart); err != nil { // for changes of the slices
		return nil, err
	}
	after, err := b.slices(ctx)
	if err != nil {
		return nil, err
	}
	side.add("ResourceSlices written", "", strconv.Itoa(written(before, after)), "", "0", "", "")
	return []table{side, cost}, nil
}

// sideBySide has all GPUs' partitions made and destroyed at once, and compares that
// with one GPU's in a row, and with a lock that the whole node has in common.
func (b *bench) sideBySide(ctx context.Context, a *agent, byGPU [][]string) (t table, err error) {
	if err := slow(a.machine, hardwareTime); err != nil {
		return t, err
	}
	alone, err := b.cycle(ctx, a, inTurn, byGPU[0])
	if err != nil {
		return t, err
	}
	parallel, err := b.cycle(ctx, a, atOnce, slices.Concat(byGPU...))
	if err != nil {
		return t, err
	}
	locked, err := b.lockedCycle(ctx, a, byGPU)
	if err != nil {
		return t, err
	}
	t = table{
		title: fmt.Sprintf("Partitions on %d GPUs at once", len(byGPU)),
		made: fmt.Sprintf("`bin/bench -only partitions`: claims of %s on H100s that take %v longer to make a GPU instance, %v to make its compute instance, and %v to destroy either. "+
			"A GPU is changed by one call at a time, so the measure is %d claims in a row on one GPU. "+
			"One lock: the same calls at once, but for one claim at a time, as in a driver with one lock for the node; that is released with one claim a GPU, and compared with one. "+
			"ResourceSlices written: during all of this and what the next table shows.",
			smallest, hardwareTime[simulator.CallMakeGPUInstance], hardwareTime[simulator.CallMakeComputeInstance],
			hardwareTime[simulator.CallDestroyGPUInstance], perGPU),
		columns: []string{"Claims", fmt.Sprintf("%d in a row, one GPU", perGPU), fmt.Sprintf("%d at once", gpus*perGPU), "Ratio", "Target", "One lock", "Ratio"},
	}
	t.add("prepare", seconds(alone.prepare), seconds(parallel.prepare), ratio(parallel.prepare, alone.prepare), "≤ 1.15",
		fmt.Sprintf("%s (%d)", seconds(locked.prepare), gpus*perGPU), ratio(locked.prepare, alone.prepare))
	t.add("release", seconds(alone.unprepare), seconds(parallel.unprepare), ratio(parallel.unprepare, alone.unprepare), "",
		fmt.Sprintf("%s (%d)", seconds(locked.unprepare), gpus), ratio(locked.unprepare, alone.unprepare/perGPU))
	return t, nil
}

// spans are how long some claims' calls took, from the first to the last.
type spans struct{ prepare, unprepare time.Duration }

// cycle prepares and releases a claim of each device.
func (b *bench) cycle(ctx context.Context, a *agent, in order, devices []string) (s spans, err error) {
	made, err := b.claims.create(ctx, "", devices...)
	if err != nil {
		return s, err
	}
	if s.prepare, err = in(ctx, a.driver.Prepare, made); err != nil {
		return s, err
	}
	s.unprepare, err = in(ctx, a.driver.Unprepare, made)
	return s, err
}

// lockedCycle prepares a claim of each partition with one lock, and releases one a GPU
// so: releasing all would take a minute and show no more. Afterwards no call is slow.
func (b *bench) lockedCycle(ctx context.Context, a *agent, byGPU [][]string) (s spans, err error) {
	made, err := b.claims.create(ctx, "", slices.Concat(byGPU...)...)
	if err != nil {
		return s, err
	}
	if s.prepare, err = oneLock(ctx, a.driver.Prepare, made); err != nil {
		return s, err
	}
	var first, others []*kubelet.Claim
	for ofGPU := range slices.Chunk(made, perGPU) {
		first, others = append(first, ofGPU[0]), append(others, ofGPU[1:]...)
	}
	if s.unprepare, err = oneLock(ctx, a.driver.Unprepare, first); err != nil {
		return s, err
	}
	if err := slow(a.machine, nil); err != nil {
		return s, err
	}
	_, err = atOnce(ctx, a.driver.Unprepare, others)
	return s, err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func ratio(of, to time.Duration) string { return fmt.Sprintf("%.2f", float64(of)/float64(to)) }

// slow has each call of hardwareTime take as long on every GPU as is given.
func slow(m *simulator.Machine, by map[string]time.Duration) error {
	for gpu := range gpus {
		for call := range hardwareTime {
			if err := m.Slow(strconv.Itoa(gpu), call, by[call]); err != nil {
				return err
			}
		}
	}
	return nil
}

// slices are what the node publishes.
func (b *bench) slices(ctx context.Context) ([]*resourceapi.ResourceSlice, error) {
	return b.WaitSlices(ctx, node, "its devices", harness.Complete)
}

// smallestOf names the smallest partitions in slices, GPU by GPU.
func smallestOf(list []*resourceapi.ResourceSlice) ([][]string, error) {
	byGPU := map[string][]string{}
	devices := harness.Devices(list)
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		attributes := devices[name].Attributes
		if profile := attributes["profile"].StringValue; profile != nil && *profile == smallest {
			gpu := *attributes["parentUUID"].StringValue
			byGPU[gpu] = append(byGPU[gpu], name)
		}
	}
	names := slices.SortedFunc(maps.Values(byGPU), slices.Compare)
	if len(names) != gpus || slices.ContainsFunc(names, func(of []string) bool { return len(of) != perGPU }) {
		return nil, fmt.Errorf("partitions of %s by GPU: %q: want %d on each of %d", smallest, names, perGPU, gpus)
	}
	return names, nil
}

// written counts slices that were made, changed or deleted.
func written(before, after []*resourceapi.ResourceSlice) int {
	versions := map[string]bool{}
	for _, s := range before {
		versions[string(s.UID)+" "+s.ResourceVersion] = true
	}
	count := max(0, len(before)-len(after))
	for _, s := range after {
		if !versions[string(s.UID)+" "+s.ResourceVersion] {
			count++
		}
	}
	return count
}
