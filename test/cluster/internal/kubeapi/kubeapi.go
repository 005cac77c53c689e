// Package kubeapi asks the API server the few things that the launcher wants to
// know, without a client library.
package kubeapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/config"
)

// Client asks as admin. It must run in the control plane's network namespace.
type Client struct{ http *http.Client }

// New reads the certificates from a cluster's pki directory.
func New(pki string) (*Client, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &Client{&http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}},
	}}, nil
}

// Node is the part of a Node that matters here.
type Node struct {
	Metadata struct{ Name string }
	Status   struct {
		Conditions []struct{ Type, Status string }
		NodeInfo   struct{ BootID string }
	}
}

// Ready is the node's condition of that name.
func (n Node) Ready() bool {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// Readyz returns nil once the API server is ready.
func (c *Client) Readyz(ctx context.Context) error { return c.get(ctx, "/readyz", nil) }

// Nodes lists the nodes.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	var list struct{ Items []Node }
	err := c.get(ctx, "/api/v1/nodes", &list)
	return list.Items, err
}

// ServiceAccount returns nil once the namespace can run Pods.
func (c *Client) ServiceAccount(ctx context.Context, namespace string) error {
	return c.get(ctx, "/api/v1/namespaces/"+namespace+"/serviceaccounts/default", nil)
}

// Renewed is when a node's kubelet last gave a sign of life.
func (c *Client) Renewed(ctx context.Context, node string) (time.Time, error) {
	var lease struct{ Spec struct{ RenewTime time.Time } }
	err := c.get(ctx, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+node, &lease)
	return lease.Spec.RenewTime, err
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Server+path, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}
