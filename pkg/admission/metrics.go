package admission

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Outcomes of a review, as labels.
const (
	outcomeAllowed = "allowed"
	outcomeWarned  = "warned"
	outcomeRefused = "refused"
	outcomeError   = "error"
)

// Metrics of reviews. A nil *Metrics measures nothing.
type Metrics struct {
	reviews *prometheus.HistogramVec
}

// NewMetrics makes and registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{reviews: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "dovetail_admission_duration_seconds", Help: "How long reviews of objects took, by kind and outcome (allowed, warned, refused, error).",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
	}, []string{"kind", "outcome"})}
	return m, registry.Register(m.reviews)
}

// time starts to measure a review; the returned function ends it. Only kinds that are
// checked become labels.
func (m *Metrics) time(kind string) func(outcome string) {
	if m == nil {
		return func(string) {}
	}
	switch kind {
	case "ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "PartitionClass":
	default:
		kind = "other"
	}
	start := time.Now()
	return func(outcome string) { m.reviews.WithLabelValues(kind, outcome).Observe(time.Since(start).Seconds()) }
}
