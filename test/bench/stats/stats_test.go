package stats

import (
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	var s Sample
	for i := 100; i > 0; i-- {
		s = append(s, time.Duration(i))
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := s.Quantile(q); got != want {
			t.Errorf("quantile %v is %d, want %d", q, got, want)
		}
	}
	if got := (Sample{}).P50(); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
	if got := (Sample{7}).P99(); got != 7 {
		t.Errorf("of one: %d", got)
	}
}

func TestRatios(t *testing.T) {
	of, to := []Sample{{2, 2}, {9}, {3}}, []Sample{{1}, {3}, {}}
	if got := Median(Ratios(of, to, Sample.P50)); got != 2.5 {
		t.Errorf("median of ratios %v, want 2.5: a round without a base is left out", got)
	}
}

func TestMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234 * time.Microsecond: "1.23 ms", 12345 * time.Microsecond: "12.3 ms", 1234 * time.Millisecond: "1234 ms",
	} {
		if got := Milliseconds(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
