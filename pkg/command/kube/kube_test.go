package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/dovetail-dra/dovetail/pkg/command"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {token: t}}]
`

func parsed(t *testing.T, args ...string) *Flags {
	t.Helper()
	var f Flags
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Add(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &f
}

func TestConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := parsed(t, "--kubeconfig", file, "--v=0", "--vmodule=").Config("dovetail-x", 30)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://192.0.2.1:6443" || config.QPS != 30 || config.Burst != 60 || config.UserAgent != "dovetail-x/"+command.Version {
		t.Errorf("%s, %v, %d, %s", config.Host, config.QPS, config.Burst, config.UserAgent)
	}
}

func TestNoServer(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, args := range map[string][]string{"no Pod": nil, "/nowhere": {"--kubeconfig=/nowhere"}} {
		_, err := parsed(t, args...).Config("dovetail-x", 1)
		if err == nil || !strings.Contains(err.Error(), "find the API server") || !strings.Contains(err.Error(), "give --kubeconfig") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
