package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
)

func TestIssue(t *testing.T) {
	dir := t.TempDir()
	ca, err := NewAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.Issue(Subject{File: "s", Name: "system:node:n", Groups: []string{"system:nodes"}, Hosts: []string{"n", "10.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "s.crt"), filepath.Join(dir, "s.key"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pem, _ := os.ReadFile(filepath.Join(dir, "ca.crt"))
	pool.AppendCertsFromPEM(pem)
	for _, host := range []string{"n", "10.0.0.1"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if s := pair.Leaf.Subject; s.CommonName != "system:node:n" || s.Organization[0] != "system:nodes" {
		t.Errorf("subject %v", s)
	}
	if err := ServiceAccountKeys(dir); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"ca.key", "s.key", "sa.key"} {
		info, err := os.Stat(filepath.Join(dir, key))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", key, info.Mode(), err)
		}
	}
}
