// Package stats makes figures of measurements.
package stats

import (
	"fmt"
	"slices"
	"time"
)

// Sample is a number of durations.
type Sample []time.Duration

// Quantile is the value that a share q of the sample does not exceed (nearest
// rank); 0 where the sample is empty.
func (s Sample) Quantile(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	rank := int(q*float64(len(sorted)) + 0.999999)
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// P50 is the median.
func (s Sample) P50() time.Duration { return s.Quantile(0.5) }

// P99 is the value that one in a hundred exceeds.
func (s Sample) P99() time.Duration { return s.Quantile(0.99) }

// Ratios compares two samples round by round.
func Ratios(of, to []Sample, figure func(Sample) time.Duration) []float64 {
	var ratios []float64
	for i := range min(len(of), len(to)) {
		if base := figure(to[i]); base > 0 {
			ratios = append(ratios, float64(figure(of[i]))/float64(base))
		}
	}
	return ratios
}

// Median of numbers; 0 of none.
func Median(numbers []float64) float64 {
	if len(numbers) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(numbers))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// All puts rounds together.
func All(rounds []Sample) Sample { return slices.Concat(rounds...) }

// Milliseconds is a duration as people read it here.
func Milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms >= 100:
		return fmt.Sprintf("%.0f ms", ms)
	case ms >= 10:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.2f ms", ms)
}
