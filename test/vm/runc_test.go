package main

import "testing"

func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{
		"[1/1] runc … failed\ncluster: building runc: no gcc\nexit status 1\n": "cluster: building runc: no gcc",
		"":                "",
		"exit status 1\n": "",
	} {
		if got := lastLine(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
