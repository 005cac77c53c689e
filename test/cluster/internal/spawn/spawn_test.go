package spawn

import (
	"os"
	"strings"
	"testing"
)

// TestMain lets the test be the launcher that Command starts again.
func TestMain(m *testing.M) {
	if len(os.Args) > 4 && os.Args[1] == ChildCommand {
		os.Exit(Child(os.Args[2], Bond(os.Args[3]), os.Args[4:]))
	}
	os.Exit(m.Run())
}

// Joining a cgroup takes a cluster, so these see how a failure to join comes back.
func TestStartReportsWhyNot(t *testing.T) {
	for _, bond := range []Bond{Free, Tied} {
		err := Start(Command("dovetail-no-such-cluster/system", bond, "true"))
		if err == nil || !strings.Contains(err.Error(), "dovetail-no-such-cluster") {
			t.Errorf("%s: got %v", bond, err)
		}
	}
}

func TestDaemonThatDoesNotStart(t *testing.T) {
	d := &Daemon{Name: "d", Group: "dovetail-no-such-cluster", Argv: []string{"true"}, Log: t.TempDir() + "/log"}
	if got := d.State(); got != "not started" {
		t.Error(got)
	}
	if err := d.Kill(); err == nil {
		t.Error("killed what does not run")
	}
	if err := d.Start(); err == nil || !strings.Contains(err.Error(), "starting d: ") {
		t.Errorf("got %v", err)
	}
	if d.Running() || d.Exited() != nil {
		t.Error("it runs")
	}
}
