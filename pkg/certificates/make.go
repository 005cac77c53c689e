package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// How long what is made is valid. Each is renewed when a third of that is left.
const (
	authorityLife = 2 * 365 * 24 * time.Hour
	leafLife      = 90 * 24 * time.Hour
	// backdate is how far another machine's clock may be behind.
	backdate = time.Hour
)

// newAuthority makes one that can sign servers' certificates and nothing else.
func newAuthority(name string, now time.Time) (*x509.Certificate, crypto.Signer, error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: name + " " + now.UTC().Format(time.DateOnly)},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	certificate, err := sign(template, template, key.Public(), key)
	return certificate, key, err
}

// newLeaf makes a server's certificate, signed by an authority.
func newLeaf(names []string, authority *x509.Certificate, signer crypto.Signer, now time.Time) (tls.Certificate, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: now.Add(-backdate), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a key: %w", err)
	}
	certificate, err := sign(template, authority, key.Public(), signer)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key, Leaf: certificate}, nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	template.SerialNumber = serial
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", template.Subject.CommonName, err)
	}
	return x509.ParseCertificate(raw)
}
