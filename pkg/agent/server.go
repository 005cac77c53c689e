package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dovetail-dra/dovetail/pkg/telemetry"
)

// server answers probes and metrics.
type server struct {
	http http.Server
}

// startServer listens on address (host:port). healthy and ready return nil, or
// why not.
func startServer(address string, metrics *telemetry.Metrics, healthy, ready func() error, failed func(error)) (*server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--http-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", answer(healthy))
	mux.HandleFunc("GET /readyz", answer(ready))
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{}))
	s := &server{http: http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed(fmt.Errorf("serve %s: %w", address, err))
		}
	}()
	return s, nil
}

func (s *server) stop(ctx context.Context) { _ = s.http.Shutdown(ctx) }

func answer(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	}
}
