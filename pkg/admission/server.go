package admission

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
	"k8s.io/klog/v2"
)

// Path is where reviews are posted.
const Path = "/validate"

// answerTimeout is how long calls have that are begun when a server is told to stop.
const answerTimeout = 3 * time.Second

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

// Start listens and serves until the context ends, and what has begun then. What the
// context is to be, Linger says.
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
	go func() { failed <- server.ServeTLS(netutil.LimitListener(listener, maxConnections), "", "") }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve reviews: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	if err := server.Shutdown(end); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		klog.FromContext(ctx).Error(err, "Stop serving reviews")
	}
	return nil
}
