// Package telemetry has the driver's metrics and the decorators that measure.
package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Operation is a bounded label: what was measured.
type Operation string

// Operations on claims.
const (
	Prepare   Operation = "prepare"
	Unprepare Operation = "unprepare"
)

// Metrics are the agent's.
type Metrics struct {
	Registry *prometheus.Registry

	claims        *prometheus.HistogramVec
	hardware      *prometheus.HistogramVec
	devices       *prometheus.GaugeVec
	unhealthy     *prometheus.GaugeVec
	unhealthyNICs *prometheus.GaugeVec
	faults        *prometheus.GaugeVec
	xids          *prometheus.CounterVec
	damaged       prometheus.Counter
	refused       prometheus.Counter
	requests      *prometheus.CounterVec
	mps           *prometheus.CounterVec
}

// New returns metrics in a registry of their own.
func New(version string) *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		claims: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "dovetail_claim_duration_seconds", Help: "How long the kubelet's calls for one claim took, by operation and outcome.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}, []string{"operation", "outcome"}),
		hardware: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "dovetail_hardware_duration_seconds", Help: "How long calls to hardware took, by call and outcome.",
			Buckets: prometheus.ExponentialBuckets(0.00001, 4, 12),
		}, []string{"call", "outcome"}),
		devices: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "dovetail_devices", Help: "Devices that this node offers, by type.",
		}, []string{"type"}),
		unhealthy: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "dovetail_gpu_unhealthy", Help: "1 for each GPU that is offered with a taint, with the reason.",
		}, []string{"gpu", "reason"}),
		unhealthyNICs: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "dovetail_nic_unhealthy", Help: "1 for each NIC that is offered with a taint, with the reason.",
		}, []string{"nic", "reason"}),
		faults: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "dovetail_device_fault", Help: "1 for each device that is not offered, or not fully, with the reason.",
		}, []string{"device", "reason"}),
		xids: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dovetail_gpu_xid_total", Help: "Xid errors that the driver reported, by GPU.",
		}, []string{"gpu"}),
		damaged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "dovetail_journal_damaged_total", Help: "Journal records that could not be read.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "dovetail_publish_errors_total", Help: "Times that the API server did not take the node's ResourceSlices as they should be.",
		}),
	}
	m.mps = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dovetail_mps_events_total", Help: "MPS control daemons that were restarted, had a fault or could not be started, by kind.",
	}, []string{"kind"})
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dovetail_api_requests_total", Help: "Requests to the API server, by method and status code.",
	}, []string{"method", "code"})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "dovetail_build_info", Help: "Always 1; the label has the version.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.Registry.MustRegister(m.claims, m.hardware, m.devices, m.unhealthy, m.unhealthyNICs, m.faults, m.xids, m.damaged, m.refused, m.requests, m.mps, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Time starts to measure an operation on a claim; the returned function ends it.
func (m *Metrics) Time(op Operation) func(error) { return timed(m.claims, string(op)) }

// Machine shows what is offered and what is not.
func (m *Metrics) Machine(now *machine.Machine) {
	m.devices.Reset()
	m.unhealthy.Reset()
	m.unhealthyNICs.Reset()
	m.faults.Reset()
	for _, kind := range machine.Kinds {
		m.devices.WithLabelValues(string(kind)).Set(0)
	}
	for _, d := range now.Devices() {
		m.devices.WithLabelValues(string(d.Kind)).Inc()
	}
	for _, gpu := range now.GPUs {
		if !gpu.Health.OK() {
			m.unhealthy.WithLabelValues(gpu.Name(), string(gpu.Health.Reason)).Set(1)
		}
	}
	for i := range now.NICs {
		if nic := &now.NICs[i]; nic.Offered() && !nic.Health.OK() {
			m.unhealthyNICs.WithLabelValues(nic.Name(), string(nic.Health.Reason)).Set(1)
		}
	}
	for _, f := range now.AllFaults() {
		m.faults.WithLabelValues(f.Device, string(f.Kind)).Set(1)
	}
}

// Xid counts an Xid error of a GPU.
func (m *Metrics) Xid(gpu string) { m.xids.WithLabelValues(gpu).Inc() }

// JournalDamaged counts a record that could not be read.
func (m *Metrics) JournalDamaged() { m.damaged.Inc() }

// CountRequests counts what goes through transport.
func (m *Metrics) CountRequests(transport http.RoundTripper) http.RoundTripper {
	return promhttp.InstrumentRoundTripperCounter(m.requests, transport)
}

// PublishFailed counts a failed attempt to publish.
func (m *Metrics) PublishFailed() { m.refused.Inc() }

// call starts to measure a call to hardware; the returned function ends it, with what the
// call returns.
func (m *Metrics) call(name string) func(*error) {
	done := timed(m.hardware, name)
	return func(err *error) { done(*err) }
}

func timed(h *prometheus.HistogramVec, name string) func(error) {
	start := time.Now()
	return func(err error) {
		h.WithLabelValues(name, outcome(err)).Observe(time.Since(start).Seconds())
	}
}

// outcome is "ok", or the error's class: a bounded set.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	if class := failure.ClassOf(err); class != nil {
		return class.Error()
	}
	return "error"
}
