package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dovetail-dra/dovetail/test/bench/stats"
)

const (
	starts       = 5
	memoryClaims = 1000
	memoryBatch  = 200
)

// footprint measures a start, and the memory after it and after many claims.
func (b *bench) footprint(ctx context.Context) (tables []table, err error) {
	t := table{
		title: "Start and memory on a DGX H100",
		made: fmt.Sprintf("`bin/bench -only footprint`: from exec to the watch event with which the slices are complete, median of %d; memory from /proc/PID/status. "+
			"The program is read from the disk, as after a boot; of a file just written the kernel maps larger pieces, and some 9 MiB more. "+
			"Most of it is the program's own text, which the kernel can drop and read again; the anonymous part it cannot.", starts),
		columns: []string{"What", "Dovetail", "of which anonymous", "Target", "NVIDIA"},
	}
	var took stats.Sample
	for range starts {
		one, err := b.timeStart(ctx)
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	t.add("start to slices published", stats.Milliseconds(took.P50()), "", "", "1046 ms")

	a, err := b.dgx(ctx, "footprint")
	if err != nil {
		return nil, err
	}
	defer func() { err = join(err, a.stop()) }()
	if err := b.addMemory(&t, "resident after start", "71.4 MB", a); err != nil {
		return nil, err
	}
	for range memoryClaims / memoryBatch {
		if err := b.useAll(ctx, a); err != nil {
			return nil, err
		}
	}
	if err := b.addMemory(&t, fmt.Sprintf("resident after %d claims", memoryClaims), "75.5 MB", a); err != nil {
		return nil, err
	}
	return []table{t}, nil
}

func (b *bench) addMemory(t *table, name, nvidia string, a *agent) error {
	m, err := memoryOf(a.pid())
	if err != nil {
		return err
	}
	t.add(append(append([]string{name}, m.cells()...), "≤ 50 MB", nvidia)...)
	return nil
}

// timeStart starts an agent where nothing is published yet.
func (b *bench) timeStart(ctx context.Context) (time.Duration, error) {
	m, err := b.machine("dgx-h100")
	if err != nil {
		return 0, err
	}
	if err := b.unpublish(ctx); err != nil {
		return 0, err
	}
	begin := time.Now()
	a, err := b.startAgent("start", m)
	if err != nil {
		return 0, err
	}
	_, err = b.published(ctx)
	took := time.Since(begin)
	return took, join(err, a.stop())
}

// unpublish deletes the node's slices, as the kubelet does.
func (b *bench) unpublish(ctx context.Context) error {
	return b.Kube.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{FieldSelector: b.Slices(node).Fields.AsSelector().String()})
}

// useAll prepares and releases a batch of claims, all GPUs at once.
func (b *bench) useAll(ctx context.Context, a *agent) error {
	made, err := b.claims.create(ctx, "", repeat(b.devices, memoryBatch)...)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for gpu := range b.devices {
		group.Go(func() error {
			for i := gpu; i < len(made); i += len(b.devices) {
				if err := a.driver.Prepare(ctx, made[i]); err != nil {
					return err
				}
				if err := a.driver.Unprepare(ctx, made[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
