package certificates

import (
	"crypto/x509"
	"slices"
	"time"
)

const (
	// settle is how long after a change every API server and every replica is taken to
	// know of it. They are told by watches, within moments.
	settle = time.Hour
	// mostAuthorities bounds the bundle where a clock jumps again and again.
	mostAuthorities = 4
)

// Names of a server.
type Names struct {
	// Authority is the authority's name, for people.
	Authority string
	// DNS names of the server.
	DNS []string
}

// Renew returns what to serve from now on, and why it is new; why is empty where
// current, which may be nil, is good as it is. trusted says whether callers trust an
// authority already.
//
// An authority is replaced in three steps, each some time after the one before, so that
// callers trust at any moment whatever a replica serves: the new one joins the bundle;
// when it is trusted, it signs what is served; then the old one leaves the bundle.
//
// The clock may be wrong, or have been: what is not valid by it is made anew, as nothing
// is lost by that.
func Renew(current *Set, now time.Time, trusted func(*x509.Certificate) bool, names Names) (next *Set, why string, err error) {
	if current == nil {
		next, err = startOver(nil, now, names)
		return next, "there was none", err
	}
	authority := current.Authorities[0]
	switch {
	case !valid(authority, now):
		why = "the authority is not valid now"
	case old(authority, now):
		why = "the authority ends soon"
	}
	if why != "" {
		next, err = startOver(current, now, names)
		return next, why, err
	}
	settled := now.Sub(authority.NotBefore) >= backdate+settle && trusted(authority)
	switch leaf := current.Leaf.Leaf; {
	case !usable(current, now, names):
		why = "the server's certificate is not valid now, or has another name"
	case settled && leaf.CheckSignatureFrom(authority) != nil:
		why = "the new authority is trusted"
	case settled && old(leaf, now):
		why = "the server's certificate ends soon"
	case len(current.Authorities) > 1 && leaf.CheckSignatureFrom(authority) == nil && now.Sub(leaf.NotBefore) >= backdate+settle:
		return &Set{Authorities: current.Authorities[:1], Key: current.Key, Leaf: current.Leaf}, "nobody needs the old authority", nil
	default:
		return current, "", nil
	}
	next = &Set{Authorities: current.Authorities, Key: current.Key}
	next.Leaf, err = newLeaf(names.DNS, authority, current.Key, now)
	return next, why, err
}

// startOver makes an authority. What there is goes on to be served as long as it works,
// since callers trust who signed it.
func startOver(current *Set, now time.Time, names Names) (*Set, error) {
	authority, key, err := newAuthority(names.Authority, now)
	if err != nil {
		return nil, err
	}
	next := &Set{Authorities: []*x509.Certificate{authority}, Key: key}
	if current != nil {
		for _, a := range current.Authorities {
			if now.Before(a.NotAfter) && len(next.Authorities) < mostAuthorities {
				next.Authorities = append(next.Authorities, a)
			}
		}
		if next.Leaf = current.Leaf; usable(next, now, names) {
			return next, nil
		}
	}
	next.Leaf, err = newLeaf(names.DNS, authority, key, now)
	return next, err
}

// usable says whether who trusts the bundle can call the server now.
func usable(s *Set, now time.Time, names Names) bool {
	roots := x509.NewCertPool()
	for _, a := range s.Authorities {
		roots.AddCert(a)
	}
	return !slices.ContainsFunc(names.DNS, func(name string) bool {
		_, err := s.Leaf.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now})
		return err != nil
	})
}

func valid(c *x509.Certificate, now time.Time) bool {
	return !now.Before(c.NotBefore) && now.Before(c.NotAfter)
}

// old: less than a third of its life is left.
func old(c *x509.Certificate, now time.Time) bool {
	return c.NotAfter.Sub(now) < c.NotAfter.Sub(c.NotBefore)/3
}
