package main

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

// TestChildrenOf: one process that was started, and has ended, shows.
func TestChildrenOf(t *testing.T) {
	children := func() []string {
		t.Helper()
		faults, err := childrenOf(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		return faults
	}
	if err := exec.Command("true").Run(); err != nil { // the first one takes another along, of Go's
		t.Fatal(err)
	}
	before := children()
	if again := children(); !slices.Equal(again, before) {
		t.Errorf("%v, then %v, and none was started", before, again)
	}
	if err := exec.Command("true").Run(); err != nil {
		t.Fatal(err)
	}
	if after := children(); slices.Equal(after, before) {
		t.Errorf("%v as before, and one was started", after)
	}
}
