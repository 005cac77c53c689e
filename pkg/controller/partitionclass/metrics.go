package partitionclass

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

// Metrics of classes, by their names.
type Metrics struct {
	devices, allocated, free, nodes *prometheus.GaugeVec
}

// NewMetrics registers them, unless they are registered already: the registry of
// controller-runtime is one for all managers of a process.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dovetail_class_" + name, Help: help}, []string{"class"})
		var known prometheus.AlreadyRegisteredError
		switch err := registry.Register(g); {
		case errors.As(err, &known):
			if same, ok := known.ExistingCollector.(*prometheus.GaugeVec); ok {
				return same
			}
			panic(err) // another kind of metric has the name
		case err != nil:
			panic(err)
		}
		return g
	}
	return &Metrics{
		devices:   gauge("devices", "Devices that the PartitionClass takes."),
		allocated: gauge("allocated", "Devices, and shares of devices, that claims have through the PartitionClass."),
		free:      gauge("free", "How many more requests for one device of the PartitionClass would be satisfied."),
		nodes:     gauge("nodes", "Nodes with devices that the PartitionClass takes."),
	}
}

func (m *Metrics) set(class string, status *v1alpha1.PartitionClassStatus) {
	m.devices.WithLabelValues(class).Set(float64(status.Devices))
	m.allocated.WithLabelValues(class).Set(float64(status.Allocated))
	m.free.WithLabelValues(class).Set(float64(status.Free))
	m.nodes.WithLabelValues(class).Set(float64(status.Nodes))
}

func (m *Metrics) forget(class string) {
	for _, g := range []*prometheus.GaugeVec{m.devices, m.allocated, m.free, m.nodes} {
		g.DeleteLabelValues(class)
	}
}
