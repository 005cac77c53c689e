package controller

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
	"github.com/dovetail-dra/dovetail/test/apiserver"
)

// BenchmarkThousandNodes is the controller on a real API server that has the slices of
// a thousand nodes with eight H100 and all their partitions, and three classes: how long
// it takes until the status of a class is right that was changed, what is written for all
// of them, and how much memory the controller has.
func BenchmarkThousandNodes(b *testing.B) {
	const nodes = 1000
	config := apiserver.Start(b)
	config.QPS, config.Burst = -1, 0
	publishNodes(b, config, nodes)

	before := heap()
	var writes atomic.Int64
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme()})
	if err != nil {
		b.Fatal(err)
	}
	mgr, err := New(counted(config, &writes), Options{MetricsAddress: "0", HealthAddress: "0", Registry: prometheus.NewRegistry()})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}()
	pc := addClass(b, c, "small", v1alpha1.Shape{MIG: &v1alpha1.MIGShape{Profile: "1g.10gb"}})
	untilCounted(b, c, pc, nodes, 7*8*nodes)
	for _, other := range []*v1alpha1.PartitionClass{
		addClass(b, c, "whole", v1alpha1.Shape{GPU: &v1alpha1.GPUShape{}}),
		addClass(b, c, "trainer", v1alpha1.Shape{Pair: &v1alpha1.PairShape{}}),
	} {
		untilCounted(b, c, other, nodes, 8*nodes)
	}
	kept := heap() - before
	writes.Store(0)
	profiles := []string{"2g.20gb", "1g.10gb"}
	perNode := []int{3 * 8, 7 * 8}
	i := 0
	for b.Loop() {
		patch := fmt.Sprintf(`{"spec":{"shape":{"mig":{"profile":%q}}}}`, profiles[i%2])
		if err := c.Patch(ctx, pc, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			b.Fatal(err)
		}
		untilCounted(b, c, pc, nodes, perNode[i%2]*nodes)
		i++
	}
	b.ReportMetric(float64(kept)/1e6, "MB-heap")
	b.ReportMetric(float64(writes.Load())/float64(i), "writes/op")
}

func addClass(b *testing.B, c client.Client, name string, shape v1alpha1.Shape) *v1alpha1.PartitionClass {
	b.Helper()
	pc := &v1alpha1.PartitionClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PartitionClassSpec{Shape: shape}}
	if err := c.Create(context.Background(), pc); err != nil {
		b.Fatal(err)
	}
	return pc
}

func counted(config *rest.Config, writes *atomic.Int64) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(countingTransport(writes))
	return config
}

// publishNodes as their agents do, several at a time.
func publishNodes(b *testing.B, config *rest.Config, nodes int) {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	pool := catalog.Build(simulatortest.Describe(b, "dgx-h100"), catalog.Options{}).Slices()
	next := make(chan int)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for n := range next {
				node := fmt.Sprintf("node-%04d", n)
				for i, content := range pool {
					slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", node, i)}}
					slice.Spec = resourceapi.ResourceSliceSpec{
						Driver: catalog.DriverName, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(len(pool))},
						Devices: content.Devices, SharedCounters: content.Counters,
					}
					if _, err := kube.ResourceV1().ResourceSlices().Create(context.Background(), slice, metav1.CreateOptions{}); err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	for n := range nodes {
		next <- n
	}
	close(next)
	group.Wait()
}

// untilCounted waits for the status of the class's generation.
func untilCounted(b *testing.B, c client.WithWatch, class *v1alpha1.PartitionClass, nodes, free int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	watch, err := c.Watch(ctx, &v1alpha1.PartitionClassList{})
	if err != nil {
		b.Fatal(err)
	}
	defer watch.Stop()
	for e := range watch.ResultChan() {
		pc, ok := e.Object.(*v1alpha1.PartitionClass)
		if ok && pc.Name == class.Name && len(pc.Status.Conditions) > 0 && pc.Status.Conditions[0].ObservedGeneration == class.Generation && int(pc.Status.Nodes) == nodes && int(pc.Status.Free) == free {
			return
		}
	}
	b.Fatal("the status does not become right")
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
