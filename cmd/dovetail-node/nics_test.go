package main

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestNodeAddresses(t *testing.T) {
	got, err := parseAddresses("192.0.2.1,2001:db8::1")
	if want := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if none, err := parseAddresses(""); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
	if _, err := parseAddresses("192.0.2.1/24"); err == nil || !strings.Contains(err.Error(), `"192.0.2.1/24": want`) {
		t.Errorf("%v", err)
	}
}
