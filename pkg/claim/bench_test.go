package claim_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/tree"
)

// benchWorld is a machine without claims, and who manages it.
func benchWorld(b *testing.B) (*claimtest.World, *claim.Manager) {
	b.Helper()
	w, err := claimtest.Create(b.TempDir(), "dgx-h100")
	if err != nil {
		b.Fatal(err)
	}
	m, _, err := w.Manager(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return w, m
}

// BenchmarkPrepare is a claim's life on one GPU without the kubelet and the API
// server: what is left is the journal's disk, the CDI directory and the locks.
func BenchmarkPrepare(b *testing.B) {
	w, m := benchWorld(b)
	c, err := w.Allocate("a", "", "gpu-1b-00")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	livesOf(b, m, c)
}

// BenchmarkPrepareAtOnce is the life of eight claims at once, each of a GPU of its own.
func BenchmarkPrepareAtOnce(b *testing.B) {
	w, m := benchWorld(b)
	var claims []*resourceapi.ResourceClaim
	for i, gpu := range m.Machine().GPUs {
		c, err := w.Allocate(fmt.Sprint("claim-", i), "", "gpu-"+gpu.Address.Label())
		if err != nil {
			b.Fatal(err)
		}
		claims = append(claims, c)
	}
	atOnce := func(do func(c *resourceapi.ResourceClaim) error) time.Duration {
		begin := time.Now()
		var group errgroup.Group
		for _, c := range claims {
			group.Go(func() error { return do(c) })
		}
		if err := group.Wait(); err != nil {
			b.Fatal(err)
		}
		return time.Since(begin)
	}
	var l lives
	for range b.N {
		l.prepared = append(l.prepared, atOnce(func(c *resourceapi.ResourceClaim) error {
			_, err := m.Prepare(b.Context(), c)
			return err
		}))
		l.released = append(l.released, atOnce(func(c *resourceapi.ResourceClaim) error {
			return m.Unprepare(b.Context(), claimtest.Reference(c))
		}))
	}
	l.report(b)
}

// BenchmarkFurtherShare is the life of one more share of a GPU, beside others.
func BenchmarkFurtherShare(b *testing.B) {
	for _, others := range []int{1, 47, 383} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			w, m := benchWorld(b)
			share := func(i int) claimtest.Share {
				gpu := m.Machine().GPUs[i/48]
				return claimtest.Share{Request: "r", Device: "mps-" + gpu.Address.Label(), ID: fmt.Sprint(i), Memory: "1Gi", Compute: 2}
			}
			for i := range others {
				c, err := w.AllocateShares(fmt.Sprint("other-", i), "", share(i))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := m.Prepare(b.Context(), c); err != nil {
					b.Fatal(err)
				}
			}
			c, err := w.AllocateShares("a", "", share(others))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Prepare(b.Context(), c); err != nil {
					b.Fatal(err)
				}
				if err := m.Unprepare(b.Context(), claimtest.Reference(c)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPreparePairs is the life of a claim of eight pairs, and beside it of one whole
// GPU, with NICs that are interfaces of this machine's kernel.
func BenchmarkPreparePairs(b *testing.B) {
	w, err := claimtest.Create(b.TempDir(), "dgx-h100")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := tree.Sync(w.Machine, tree.Built{}); err != nil {
		b.Fatal(err)
	}
	now, err := w.Machine.NICs().DescribeNICs(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	kernel := kerneltest.NewReal(b)
	for _, nic := range now.NICs {
		kernel.AddVeth(kernel.HostNamespace, nic.Netdevs[0].Name, nic.Netdevs[0].MAC)
	}
	w.NICs = rdma.New(rdma.Options{SysfsRoot: filepath.Join(w.Machine.Root(), "sys"), Kernel: kernel})
	m, _, err := w.Manager(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var pairs []string
	for _, d := range m.Machine().Devices() {
		if d.Kind == machine.KindPair {
			pairs = append(pairs, d.Name)
		}
	}
	if len(pairs) != 8 {
		b.Fatalf("pairs %q", pairs)
	}
	for name, devices := range map[string][]string{"1-GPU": {"gpu-1b-00"}, "8-pairs": pairs} {
		c, err := w.Allocate(name, "", devices...)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) { livesOf(b, m, c) })
	}
}

// livesOf reports how long preparations and releases of a claim take.
func livesOf(b *testing.B, m *claim.Manager, c *resourceapi.ResourceClaim) {
	var l lives
	for range b.N {
		begin := time.Now()
		if _, err := m.Prepare(b.Context(), c); err != nil {
			b.Fatal(err)
		}
		ready := time.Now()
		if err := m.Unprepare(b.Context(), claimtest.Reference(c)); err != nil {
			b.Fatal(err)
		}
		l.prepared, l.released = append(l.prepared, ready.Sub(begin)), append(l.released, time.Since(ready))
	}
	l.report(b)
}

// lives are how long preparations and releases took.
type lives struct{ prepared, released []time.Duration }

func (l *lives) report(b *testing.B) {
	for name, took := range map[string][]time.Duration{"prepare": l.prepared, "release": l.released} {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2]), name+"-p50-ns")
		b.ReportMetric(float64(took[len(took)*99/100]), name+"-p99-ns")
	}
}
