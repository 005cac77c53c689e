package rdma_test

import (
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
)

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
