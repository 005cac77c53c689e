package main

import (
	"os"
	"strings"
	"testing"
)

// TestLacking: what a machine cannot have is no failure among others, and one
// where it is all that was asked for.
func TestLacking(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("out/log", 0o755); err != nil {
		t.Fatal(err)
	}
	const script = "echo looking >&2; echo 'vm: no QEMU' >&2; exit "
	for _, x := range []struct {
		code    string
		asked   bool
		skipped string
		err     string
	}{
		{"3", false, "not run: vm: no QEMU", ""},
		{"3", true, "", "not run: vm: no QEMU"},
		{"2", false, "", "exit status 2"},
		{"0", false, "", ""},
	} {
		s := step{group: "vm", name: "x", argv: []string{"sh", "-c", script + x.code}, tests: true, lacking: 3, asked: x.asked}
		r := s.execute(t.Context(), nil)
		if r.skipped != x.skipped || (r.err == nil) != (x.err == "") || r.err != nil && !strings.Contains(r.err.Error(), x.err) {
			t.Errorf("exit %s, asked for alone %v: skipped %q, error %v", x.code, x.asked, r.skipped, r.err)
		}
	}
}
