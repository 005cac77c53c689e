package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/certificates"
)

// A caller that trusts the bundle reaches the handler, and has its answer also where the
// server is told to stop meanwhile.
func TestServer(t *testing.T) {
	names := certificates.Names{Authority: "test", DNS: []string{"webhook.ns.svc"}}
	set, _, err := certificates.Renew(nil, time.Now(), func(*x509.Certificate) bool { return true }, names)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	reviews, last := &Handler{Checker: checker(t, "")}, false
	s := &Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if last {
				stop()
			}
			reviews.ServeHTTP(w, r)
		}),
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &set.Leaf, nil },
	}
	ended := make(chan error)
	go func() { ended <- s.serve(ctx, listener) }()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(set.Bundle()) {
		t.Fatal("no certificate in the bundle")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: names.DNS[0], MinVersion: tls.VersionTLS13}}}
	call := func(want int, padding string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+listener.Addr().String()+Path,
			strings.NewReader(`{"request":{"uid":"1","kind":{"kind":"Gadget"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Padding", padding)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("status %s", response.Status)
		}
	}
	call(http.StatusOK, "")
	call(http.StatusRequestHeaderFieldsTooLarge, strings.Repeat("x", 2*maxHeader))
	last = true
	call(http.StatusOK, "")
	client.CloseIdleConnections()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestServerSaysWhyItCannotListen(t *testing.T) {
	s := &Server{Address: "127.0.0.1:-1"}
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "listen for reviews") {
		t.Errorf("error %v", err)
	}
}
