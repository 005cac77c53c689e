package usage

import (
	"fmt"
	"runtime"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/controller/compact"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// BenchmarkThousandNodes is a thousand nodes of eight H100 with all partitions
// published: what they keep of the heap, what a changed class costs, and what a changed
// node costs.
func BenchmarkThousandNodes(b *testing.B) {
	const nodes = 1000
	m := simulatortest.Describe(b, "dgx-h100")
	pool := catalog.Build(m, catalog.Options{}).Slices()
	pc := []v1alpha1.PartitionClass{partitionClass(b, "one")}
	compiled, err := class.Compile(&pc[0])
	if err != nil {
		b.Fatal(err)
	}
	spec := compiled.DeviceClass()

	var small compact.Slices
	store := New()
	before := heap()
	devices := 0
	var last *resourceapi.ResourceSlice
	for n := range nodes {
		node := fmt.Sprintf("node-%04d", n)
		for i, content := range pool {
			slice := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{
				Driver: catalog.DriverName, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(len(pool))},
				Devices: content.Devices, SharedCounters: content.Counters,
			}}
			slice.Name = fmt.Sprintf("%s-%d", node, i)
			slice.UID = types.UID(slice.Name)
			data, err := slice.Marshal() // so that nothing is shared that is not made so
			if err != nil {
				b.Fatal(err)
			}
			read := &resourceapi.ResourceSlice{}
			if err := read.Unmarshal(data); err != nil {
				b.Fatal(err)
			}
			compacted, err := small.Transform(read)
			if err != nil {
				b.Fatal(err)
			}
			last = compacted.(*resourceapi.ResourceSlice)
			store.SetSlice(last)
			devices += len(content.Devices)
		}
	}
	kept := heap() - before
	b.Run("class", func(b *testing.B) {
		for b.Loop() {
			store.Forget("one")
			count(b, store, &spec, nodes)
		}
		b.ReportMetric(float64(kept)/1e6, "MB-kept")
		b.ReportMetric(float64(devices), "devices")
	})
	b.Run("node", func(b *testing.B) {
		for b.Loop() {
			store.SetSlice(last)
			count(b, store, &spec, nodes)
		}
	})
}

func count(b *testing.B, store *Store, spec *resourceapi.DeviceClassSpec, nodes int) {
	counts, err := store.Count(b.Context(), "one", spec)
	if err != nil {
		b.Fatal(err)
	}
	if counts.Nodes != nodes || counts.Free != 7*8*nodes {
		b.Fatalf("%+v", counts)
	}
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
