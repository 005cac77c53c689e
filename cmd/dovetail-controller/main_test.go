package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestHelp(t *testing.T) {
	out, err := execute(t, "run", "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--kubeconfig", "--leader-elect", "--lease-namespace", "--metrics-address", "--health-address", "--webhook-address", "--webhook-name", "--webhook-namespace", "--v"} {
		if !strings.Contains(out, want) {
			t.Errorf("the help does not say %q:\n%s", want, out)
		}
	}
}

func TestBadFlags(t *testing.T) {
	if _, err := os.Stat(namespaceFile); err == nil {
		t.Skip("runs in a Pod, which has a namespace")
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"run"}, []string{"--lease-namespace", "--leader-elect=false"}},
		{[]string{"run", "--leader-elect=false"}, []string{"--kubeconfig"}},
		{[]string{"run", "--leader-elect=false", "--webhook-address=:9443"}, []string{"--webhook-namespace", "leave --webhook-address out"}},
		{[]string{"run", "--lease-namespace=a", "--kubeconfig=/nowhere"}, []string{"find the API server", "/nowhere"}},
		{[]string{"run", "--leader-elects"}, []string{"--leader-elects"}},
		{[]string{"run", "now"}, []string{"now"}},
	} {
		_, err := execute(t, test.args...)
		if err == nil {
			t.Errorf("%q: no error", test.args)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %q is not in %q", test.args, want, err)
			}
		}
	}
}
