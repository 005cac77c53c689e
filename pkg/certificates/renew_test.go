package certificates

import (
	"crypto/x509"
	"testing"
	"time"
)

var names = Names{Authority: "dovetail test", DNS: []string{"dovetail-webhook.dovetail-system.svc"}}

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func everybody(*x509.Certificate) bool { return true }
func nobody(*x509.Certificate) bool    { return false }

// renew wants a change, or none.
func renew(t *testing.T, current *Set, now time.Time, trusted func(*x509.Certificate) bool, want string) *Set {
	t.Helper()
	next, why, err := Renew(current, now, trusted, names)
	if err != nil || why != want {
		t.Fatalf("at %s: why %q, %v, want %q", now, why, err, want)
	}
	if why == "" && next != current {
		t.Fatal("another set without a reason")
	}
	data, err := next.Data()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(data)
	if err != nil {
		t.Fatal(err)
	}
	if why == "" {
		return current
	}
	return loaded
}

// calls says whether a caller that trusts of can call who serves by.
func calls(of, by *Set, now time.Time) bool {
	return usable(&Set{Authorities: of.Authorities, Leaf: by.Leaf}, now, names)
}

func TestSteps(t *testing.T) {
	s := renew(t, nil, start, everybody, "there was none")
	renew(t, s, start.Add(time.Minute), everybody, "")
	if !calls(s, s, start.Add(-backdate+time.Minute)) {
		t.Error("not valid for a machine whose clock is behind")
	}
	now := start.Add(leafLife * 2 / 3)
	renew(t, s, now.Add(-time.Hour), everybody, "")
	renewed := renew(t, s, now.Add(time.Hour), everybody, "the server's certificate ends soon")
	if len(renewed.Authorities) != 1 || !renewed.Authorities[0].Equal(s.Authorities[0]) || !calls(s, renewed, now) {
		t.Error("the authority has changed")
	}
}

func TestAuthoritysSteps(t *testing.T) {
	s := renew(t, nil, start, everybody, "there was none")
	now := start.Add(authorityLife*2/3 + time.Hour)
	s.Leaf, _ = newLeaf(names.DNS, s.Authorities[0], s.Key, now.Add(-time.Hour))
	joined := renew(t, s, now, everybody, "the authority ends soon")
	if len(joined.Authorities) != 2 || !joined.Leaf.Leaf.Equal(s.Leaf.Leaf) {
		t.Fatal("what is served must stay as it is")
	}
	renew(t, joined, now.Add(settle/2), everybody, "")
	renew(t, joined, now.Add(2*settle), nobody, "")
	signs := renew(t, joined, now.Add(2*settle), everybody, "the new authority is trusted")
	if len(signs.Authorities) != 2 || !calls(joined, signs, now.Add(2*settle)) || !calls(signs, joined, now.Add(2*settle)) {
		t.Fatal("who knows the one cannot call the other")
	}
	renew(t, signs, now.Add(2*settle+settle/2), everybody, "")
	left := renew(t, signs, now.Add(4*settle), everybody, "nobody needs the old authority")
	if len(left.Authorities) != 1 || !left.Leaf.Leaf.Equal(signs.Leaf.Leaf) || !calls(left, left, now.Add(4*settle)) {
		t.Fatal("not the new authority alone")
	}
	renew(t, left, now.Add(5*settle), everybody, "")
}

// Ten years, in which what callers trust and what another replica serves is half an
// hour old: nobody is ever turned away.
func TestNobodyIsTurnedAway(t *testing.T) {
	const coarse, fine = 48 * time.Hour, 15 * time.Minute
	s := renew(t, nil, start, everybody, "there was none")
	before, longBefore := s, s // one and two steps ago
	authorities, leaves := 0, 0
	changed := start
	for now := start; now.Before(start.AddDate(10, 0, 0)); {
		next, why, err := Renew(s, now, func(c *x509.Certificate) bool { return Trusts(longBefore.Bundle(), c) }, names)
		if err != nil {
			t.Fatal(err)
		}
		if why != "" {
			changed = now
			if !next.Authorities[0].Equal(s.Authorities[0]) {
				authorities++
			}
			if !next.Leaf.Leaf.Equal(s.Leaf.Leaf) {
				leaves++
			}
		}
		s, before, longBefore = next, s, before
		for _, caller := range []*Set{s, before, longBefore} {
			for _, server := range []*Set{s, before, longBefore} {
				if !calls(caller, server, now) {
					t.Fatalf("at %s (%s): turned away", now, why)
				}
			}
		}
		if now.Sub(changed) < 4*settle { // all that follows from a change
			now = now.Add(fine)
			continue
		}
		now = now.Add(coarse)
	}
	if authorities < 6 || leaves < 50 {
		t.Errorf("only %d authorities and %d certificates in ten years", authorities, leaves)
	}
}

// Whatever the clock does, what comes of it works by the clock as it is now; and when it
// is right again, so do the certificates.
func TestClockJumps(t *testing.T) {
	s := renew(t, nil, start, everybody, "there was none")
	now := start
	for _, jump := range []time.Duration{
		20 * 365 * 24 * time.Hour, -20 * 365 * 24 * time.Hour, -40 * 365 * 24 * time.Hour, 40 * 365 * 24 * time.Hour,
		100 * 24 * time.Hour, -100 * 24 * time.Hour, 3 * time.Hour, -3 * time.Hour,
	} {
		for range 3 { // it may go on for a while
			now = now.Add(jump)
			for range 3 {
				next, _, err := Renew(s, now, everybody, names)
				if err != nil {
					t.Fatal(err)
				}
				if s = next; !calls(s, s, now) {
					t.Fatalf("at %s, after a jump of %s: turned away", now, jump)
				}
				if len(s.Authorities) > mostAuthorities {
					t.Fatalf("%d authorities", len(s.Authorities))
				}
			}
			if _, why, _ := Renew(s, now, everybody, names); why != "" {
				t.Errorf("at %s: still not at rest: %s", now, why)
			}
		}
	}
}

func TestAnotherName(t *testing.T) {
	s := renew(t, nil, start, everybody, "there was none")
	next, why, err := Renew(s, start, everybody, Names{Authority: "x", DNS: []string{"other.ns.svc"}})
	if err != nil || why == "" || next.Leaf.Leaf.VerifyHostname("other.ns.svc") != nil || !next.Authorities[0].Equal(s.Authorities[0]) {
		t.Errorf("%q, %v", why, err)
	}
}

func TestLoadRefuses(t *testing.T) {
	good, err := renew(t, nil, start, everybody, "there was none").Data()
	if err != nil {
		t.Fatal(err)
	}
	other, err := renew(t, nil, start, everybody, "there was none").Data()
	if err != nil {
		t.Fatal(err)
	}
	for key := range good {
		for name, value := range map[string][]byte{"nothing": nil, "no PEM": []byte("x"), "of another": other[key]} {
			data := map[string][]byte{}
			for k, v := range good {
				data[k] = v
			}
			data[key] = value
			if _, err := Load(data); err == nil {
				t.Errorf("%s is %s: no error", key, name)
			}
		}
	}
	if s, err := Load(nil); s != nil || err != nil {
		t.Errorf("an empty Secret: %v, %v", s, err)
	}
}
