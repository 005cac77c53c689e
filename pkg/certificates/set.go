// Package certificates makes the certificate of a server that the API server calls, and
// renews it in time: an authority of its own, what it has signed, and the bundle that
// callers trust. All is in one Secret, so that all replicas serve the same. Nothing of
// it is for other servers.
package certificates

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
)

// Keys of the Secret.
const (
	bundleKey       = "ca.crt" // authorities, the one that signs first
	authorityKeyKey = "ca.key" // of the first
	leafKey         = "tls.crt"
	leafKeyKey      = "tls.key"
)

// Set is what the Secret has. It is not changed once it is made.
type Set struct {
	// Authorities that callers trust, the one that signs first. The others have signed
	// what may still be served somewhere.
	Authorities []*x509.Certificate
	// Key of the first authority.
	Key crypto.Signer
	// Leaf is served.
	Leaf tls.Certificate
}

// Bundle has the authorities in PEM.
func (s *Set) Bundle() []byte {
	var b bytes.Buffer
	for _, a := range s.Authorities {
		_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: a.Raw}) // a buffer takes everything
	}
	return b.Bytes()
}

// Data is the Secret's.
func (s *Set) Data() (map[string][]byte, error) {
	authorityKey, err := x509.MarshalPKCS8PrivateKey(s.Key)
	if err != nil {
		return nil, fmt.Errorf("the authority's key: %w", err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(s.Leaf.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("the server's key: %w", err)
	}
	return map[string][]byte{
		bundleKey:       s.Bundle(),
		authorityKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: authorityKey}),
		leafKey:         pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Leaf.Leaf.Raw}),
		leafKeyKey:      pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}, nil
}

// Load reads a Secret's data. nil without an error: there is nothing yet.
func Load(data map[string][]byte) (*Set, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var s Set
	var err error
	if s.Authorities, err = parseBundle(data[bundleKey]); err != nil {
		return nil, fmt.Errorf("%s: %w", bundleKey, err)
	}
	if len(s.Authorities) == 0 {
		return nil, fmt.Errorf("%s: no certificate", bundleKey)
	}
	authority, err := tls.X509KeyPair(data[bundleKey], data[authorityKeyKey])
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", bundleKey, authorityKeyKey, err)
	}
	signer, ok := authority.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: %T signs nothing", authorityKeyKey, authority.PrivateKey)
	}
	s.Key = signer
	if s.Leaf, err = tls.X509KeyPair(data[leafKey], data[leafKeyKey]); err != nil {
		return nil, fmt.Errorf("%s and %s: %w", leafKey, leafKeyKey, err)
	}
	return &s, nil
}

// parseBundle reads certificates in PEM.
func parseBundle(content []byte) ([]*x509.Certificate, error) {
	var found []*x509.Certificate
	for {
		var block *pem.Block
		if block, content = pem.Decode(content); block == nil {
			return found, nil
		}
		if block.Type != "CERTIFICATE" {
			return nil, errors.New("a " + block.Type + " among the certificates")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		found = append(found, c)
	}
}

// Trusts says whether a bundle in PEM has the certificate.
func Trusts(bundle []byte, c *x509.Certificate) bool {
	found, err := parseBundle(bundle)
	return err == nil && slices.ContainsFunc(found, c.Equal)
}
