package mps_test

import (
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
)

// BenchmarkFirstStart starts and stops a control daemon, a stand-in.
func BenchmarkFirstStart(b *testing.B) {
	for _, machine := range []string{"dgx-h100", "mps-v3"} {
		b.Run(machine, func(b *testing.B) {
			w := newWorld(b, machine)
			devices := w.uuids(0)
			for b.Loop() {
				w.start(b, devices)
				b.StopTimer()
				if err := w.StopMPS(b.Context(), devices); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkFurtherStart joins one that runs.
func BenchmarkFurtherStart(b *testing.B) {
	w := newWorld(b, "dgx-h100")
	devices := w.uuids(0)
	w.start(b, devices)
	for b.Loop() {
		w.start(b, devices)
	}
}

// BenchmarkNamespace makes and removes one, a claim's.
func BenchmarkNamespace(b *testing.B) {
	w := newWorld(b, "mps-v3")
	devices := w.uuids(0)
	w.start(b, devices)
	limits := hardware.MPSLimits{ThreadPercentage: 25, Memory: map[string]uint64{devices[0]: 1 << 30}}
	for b.Loop() {
		if _, err := w.MakeNamespace(b.Context(), devices, "a", limits); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := w.RemoveNamespace(b.Context(), devices, "a"); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
