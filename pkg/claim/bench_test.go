package claim_test

import (
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
