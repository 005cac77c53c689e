package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

func cluster() *state.Cluster {
	return &state.Cluster{Name: "x", Dir: "/s", Bin: "/b", Nodes: []string{"node-1", "node-2"}}
}

func TestDefaultsHaveNoGates(t *testing.T) {
	c := cluster()
	kubelet, err := Kubelet(c, "node-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{APIServer(c), ControllerManager(c), Scheduler(c), kubelet} {
		for _, a := range argv {
			if strings.HasPrefix(a, "--feature-gates") || strings.HasPrefix(a, "--runtime-config") {
				t.Errorf("%s has %s", argv[0], a)
			}
		}
	}
	if strings.Contains(kubeletYAML(c, "node-1", nil), "featureGates") {
		t.Error("kubelet has gates")
	}
}

func TestGates(t *testing.T) {
	c := cluster()
	c.FeatureGates = "A=true,B=false"
	c.RuntimeConfig = RuntimeConfig(c.FeatureGates)
	for _, argv := range [][]string{APIServer(c), ControllerManager(c), Scheduler(c)} {
		if !slices.Contains(argv, "--feature-gates=A=true,B=false") {
			t.Errorf("%s lacks the gates", argv[0])
		}
	}
	if !strings.Contains(strings.Join(APIServer(c), " "), "resource.k8s.io/v1alpha3=true") {
		t.Error("the alpha API is not served")
	}
	gates, err := ParseGates(c.FeatureGates)
	if err != nil {
		t.Fatal(err)
	}
	if got := kubeletYAML(c, "node-1", gates); !strings.Contains(got, "featureGates: {A: true, B: false}") {
		t.Error(got)
	}
	for _, bad := range []string{"A", "A=yes", "=true", "A=true,A=false"} {
		if _, err := ParseGates(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestNode(t *testing.T) {
	c := cluster()
	yaml := kubeletYAML(c, "node-2", nil)
	for _, want := range []string{"cgroupRoot: /dovetail-x/node-2\n", "tlsCertFile: /s/pki/node-2.crt\n", "maxPods: 250\n",
		`nodefs.available: "0%"`, "cgroupDriver: cgroupfs\n", "failCgroupV1: false\n"} {
		if !strings.Contains(yaml, want) {
			t.Errorf("kubelet's configuration lacks %q", want)
		}
	}
	argv, err := Kubelet(c, "node-2")
	if err != nil || !slices.Contains(argv, "--node-ip=10.99.0.2") {
		t.Errorf("%v, %v", argv, err)
	}
	if _, err := Kubelet(c, "node-3"); err == nil {
		t.Error("a kubelet for a node that is not")
	}
	if toml := containerdTOML("/b"); !strings.Contains(toml, `"/var/run/cdi"`) || !strings.Contains(toml, `"/b/runc"`) {
		t.Error(toml)
	}
	if conf := cniConflist(2); !json.Valid([]byte(conf)) || !strings.Contains(conf, "10.99.2.0/24") {
		t.Error(conf)
	}
}

func TestWritePKI(t *testing.T) {
	c := cluster()
	c.Dir = t.TempDir()
	if err := os.MkdirAll(c.PKI(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WritePKI(c); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{c.Kubeconfig(), filepath.Join(c.PKI(), "node-2.kubeconfig"), filepath.Join(c.PKI(), "sa.pub")} {
		if _, err := os.Stat(f); err != nil {
			t.Error(err)
		}
	}
	b, _ := os.ReadFile(c.Kubeconfig())
	if !strings.Contains(string(b), filepath.Join(c.PKI(), "admin.crt")) {
		t.Errorf("%s", b)
	}
}
