package claim_test

import (
	"fmt"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
)

// BenchmarkPrepare is a claim's life on one GPU without the kubelet and the API
// server: what is left is the journal's disk, the CDI directory and the locks.
func BenchmarkPrepare(b *testing.B) {
	w, err := claimtest.Create(b.TempDir(), "dgx-h100")
	if err != nil {
		b.Fatal(err)
	}
	m, _, err := w.Manager(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	c, err := w.Allocate("a", "", "gpu-1b-00")
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
}

// BenchmarkFurtherShare is the life of one more share of a GPU, beside others.
func BenchmarkFurtherShare(b *testing.B) {
	for _, others := range []int{1, 47, 383} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			w, err := claimtest.Create(b.TempDir(), "dgx-h100")
			if err != nil {
				b.Fatal(err)
			}
			m, _, err := w.Manager(b.Context())
			if err != nil {
				b.Fatal(err)
			}
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
