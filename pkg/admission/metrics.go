package admission

import (
	"errors"
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

// NewMetrics registers them, unless they are registered already: the registry of
// controller-runtime is one for all managers of a process.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{reviews: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "dovetail_admission_duration_seconds", Help: "How long reviews of objects took, by kind and outcome (allowed, warned, refused, error).",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
	}, []string{"kind", "outcome"})}
	var known prometheus.AlreadyRegisteredError
	err := registry.Register(m.reviews)
	if errors.As(err, &known) {
		if same, ok := known.ExistingCollector.(*prometheus.HistogramVec); ok {
			m.reviews, err = same, nil
		}
	}
	return m, err
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
