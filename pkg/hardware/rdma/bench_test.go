package rdma_test

import (
	"fmt"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
)

// Of the machine that is described: NICs, and virtual functions of each.
const (
	manyNICs = 16
	manyVFs  = 16
)

// BenchmarkDescribeNICs reads a large machine: files in a tree, interfaces of this
// machine's kernel.
func BenchmarkDescribeNICs(b *testing.B) {
	k := kerneltest.NewReal(b)
	w := &world{t: b, root: b.TempDir()}
	for i := range manyNICs {
		function := fmt.Sprintf("0000:%02x:00.0", 0x10+i)
		pf := roce(fmt.Sprintf("eth%d", i), fmt.Sprintf("mlx5_%d", i), i)
		for v := range manyVFs {
			address := fmt.Sprintf("0000:%02x:%02x.%d", 0x10+i, (v+1)/8, (v+1)%8)
			pf[fmt.Sprintf("virtfn%d", v)] = "->../" + address
			number := manyNICs + i*manyVFs + v
			vf := roce(fmt.Sprintf("eth%d", number), fmt.Sprintf("mlx5_%d", number), number)
			vf["physfn"] = "->../" + function
			w.add(address, vf)
		}
		w.add(function, pf)
	}
	for n := range manyNICs * (1 + manyVFs) {
		k.AddVeth(k.HostNamespace, fmt.Sprintf("eth%d", n), fmt.Sprintf("b8:3f:d2:00:%02x:%02x", n>>8, n&0xff))
	}
	nics := rdma.New(rdma.Options{SysfsRoot: w.root, Kernel: k})
	b.ResetTimer()
	for range b.N {
		d, err := nics.DescribeNICs(b.Context())
		if err != nil || len(d.NICs) != manyNICs || len(d.NICs[7].VFs) != manyVFs || len(d.Faults) != 0 {
			b.Fatalf("%v: %d NICs, faults %+v", err, len(d.NICs), d.Faults)
		}
	}
	b.ReportMetric(float64(nics.Reads())/float64(b.N), "reads/op")
}

// BenchmarkMoveNIC is what moving a NIC costs a container's start, and bringing it home
// its claim's release, without the start of a program.
func BenchmarkMoveNIC(b *testing.B) {
	_, nics, pod := onReal(b)
	home, err := nics.NICHome(b.Context(), at(b, first))
	must(b, err)
	order := hardware.NICMove{Home: home, Name: "net1", MTU: 9000, Addresses: []string{"10.9.0.1/24"}}
	b.Run("there", func(b *testing.B) {
		for range b.N {
			must(b, nics.Move(b.Context(), pod, order))
			b.StopTimer()
			must(b, nics.BringHome(b.Context(), home))
			b.StartTimer()
		}
	})
	b.Run("back", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			must(b, nics.Move(b.Context(), pod, order))
			b.StartTimer()
			must(b, nics.BringHome(b.Context(), home))
		}
	})
	b.Run("restarted", func(b *testing.B) {
		must(b, nics.Move(b.Context(), pod, order))
		for b.Loop() {
			must(b, nics.Move(b.Context(), pod, order))
		}
		must(b, nics.BringHome(b.Context(), home))
	})
}
