package admission

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/klog/v2"
)

// Path is where reviews are posted.
const Path = "/validate"

// linger is how long a server that is told to stop still takes calls: so long the API
// server may not know yet that it leaves.
const linger = 3 * time.Second

// Server answers the API server. Every replica has one.
type Server struct {
	// Address to listen at, host:port.
	Address string
	Handler http.Handler
	// Certificate is for tls.Config.GetCertificate.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// NeedLeaderElection says that every replica runs it.
func (s *Server) NeedLeaderElection() bool { return false }

// TLS is how API servers are spoken with: those that have a webhook know version 1.3.
func TLS(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{GetCertificate: certificate, MinVersion: tls.VersionTLS13}
}

// Start listens and serves until the context ends, and some moments longer.
func (s *Server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("listen for reviews: %w", err)
	}
	return s.serve(ctx, listener)
}

func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("POST "+Path, s.Handler)
	server := &http.Server{
		Handler:           mux,
		TLSConfig:         TLS(s.Certificate),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       callTimeout,
		WriteTimeout:      callTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: streams, MaxReceiveBufferPerConnection: received, MaxReceiveBufferPerStream: received},
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(limit(listener, maxConnections), "", "") }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve reviews: %w", err)
	case <-ctx.Done():
	}
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), linger)
	defer cancel()
	select {
	case err := <-failed:
		return fmt.Errorf("serve reviews: %w", err)
	case <-leave.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), linger)
	defer cancel()
	if err := server.Shutdown(end); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		klog.FromContext(ctx).Error(err, "Stop serving reviews")
	}
	return nil
}
