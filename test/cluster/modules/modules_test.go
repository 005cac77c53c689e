package modules

import "testing"

func TestVersion(t *testing.T) {
	for _, x := range []struct{ name, dependency, want string }{
		{"k8s", "k8s.io/kubernetes", "v1.37.2"},
		{"etcd", "go.etcd.io/etcd/server/v3", "v3.7.3"},
		{"containerd", "github.com/containerd/containerd/v2", "v2.4.2"},
		{"runc", "github.com/opencontainers/runc", "v1.5.3"},
		{"cni", "github.com/containernetworking/plugins", "v1.10.0"},
	} {
		if got, err := Version(x.name, x.dependency); got != x.want || err != nil {
			t.Errorf("%s: got %s, %v", x.name, got, err)
		}
	}
	if _, err := Version("cni", "example.com/x"); err == nil {
		t.Error("a version of what is not required")
	}
}

func TestAllThere(t *testing.T) {
	for _, n := range Names {
		if m, err := Get(n); err != nil || len(m.Mod) == 0 || len(m.Sum) == 0 {
			t.Errorf("%s: %v", n, err)
		}
	}
}
