package cli

import (
	"io"
	"strings"
	"testing"
)

// run runs a command line that must fail before it does anything.
func run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	err := cmd.ExecuteContext(t.Context())
	if err == nil {
		t.Fatalf("%v was taken", args)
	}
	return err.Error()
}

func TestArguments(t *testing.T) {
	dir := t.TempDir()
	for _, x := range []struct{ args, want string }{
		{"up 2 --nodes 3", "--nodes says 3, the argument 2"},
		{"build runk", "no program \"runk\": there are etcd, "},
		{"up two", "not a number"},
		{"pu 2", "there is no command \"pu\": see cluster --help"},
		{"up 0", "give a number from 1"},
		{"up --feature-gates=A", "NAME=true"},
		{"--name A up", "cluster name"},
		{"--name none kubectl get pods --name x", "no cluster \"none\""},
		{"--name none exec node-1 ls -l", "no cluster \"none\""},
		{"--name none run ls -l", "no cluster \"none\""},
		{"--name none reboot node-1 -- ls -l", "no cluster \"none\""},
		{"--name none status", "`up`"},
		{"exec node-1", "at least 2"},
		{"load", "at least 1"},
	} {
		args := append([]string{"--state-dir", dir}, strings.Fields(x.args)...)
		if got := run(t, args...); !strings.Contains(got, x.want) {
			t.Errorf("%s: %q, want %q", x.args, got, x.want)
		}
	}
}

func TestNameFromEnvironment(t *testing.T) {
	t.Setenv(envName, "from-env")
	if got := run(t, "--state-dir", t.TempDir(), "status"); !strings.Contains(got, `"from-env"`) {
		t.Error(got)
	}
}

func TestUnimportantCommandsAreHidden(t *testing.T) {
	for _, c := range root().Commands() {
		if strings.HasPrefix(c.Name(), "__") != c.Hidden {
			t.Errorf("%s: hidden %t", c.Name(), c.Hidden)
		}
	}
}
