package build

import (
	"fmt"
	"strings"

	"github.com/dovetail-dra/dovetail/test/cluster/modules"
)

// Program is one program to build.
type Program struct {
	Name    string // path below bin/
	Module  string // the pinned module
	Package string
	Cgo     bool
	Tags    string
	LDFlags string
}

const strip = "-s -w"

// Programs lists what is built, in order.
func Programs() ([]Program, error) {
	kubernetes, err := modules.Version("k8s", "k8s.io/kubernetes")
	if err != nil {
		return nil, err
	}
	containerd, err := modules.Version("containerd", "github.com/containerd/containerd/v2")
	if err != nil {
		return nil, err
	}
	runc, err := modules.Version("runc", "github.com/opencontainers/runc")
	if err != nil {
		return nil, err
	}
	out := []Program{{Name: "etcd", Module: "etcd", Package: "go.etcd.io/etcd/server/v3", LDFlags: strip}}
	for _, c := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"} {
		out = append(out, Program{Name: c, Module: "k8s", Package: "k8s.io/kubernetes/cmd/" + c, LDFlags: kubernetesFlags(kubernetes)})
	}
	for _, c := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		out = append(out, Program{Name: c, Module: "containerd", Package: "github.com/containerd/containerd/v2/cmd/" + c,
			Tags:    "no_btrfs no_devmapper no_zfs no_aufs",
			LDFlags: strip + " -X github.com/containerd/containerd/v2/version.Version=" + containerd})
	}
	// kubelet gives every sandbox a seccomp profile, so runc must know seccomp.
	out = append(out, Program{Name: "runc", Module: "runc", Package: "github.com/opencontainers/runc", Cgo: true,
		Tags: "seccomp", LDFlags: strip + " -X main.version=" + strings.TrimPrefix(runc, "v")})
	for _, p := range []string{"main/loopback", "main/bridge", "ipam/host-local"} {
		_, name, _ := strings.Cut(p, "/")
		out = append(out, Program{Name: "cni/" + name, Module: "cni",
			Package: "github.com/containernetworking/plugins/plugins/" + p, LDFlags: strip})
	}
	return out, nil
}

// kubernetesFlags stamps the version in: unstamped programs call themselves v0.0.0,
// and refuse to work with each other.
func kubernetesFlags(version string) string {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	s := strip
	for _, p := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, kv := range []string{"gitVersion=" + version, "gitMajor=" + parts[0], "gitMinor=" + parts[1], "gitTreeState=clean",
			"gitCommit=" + strings.Repeat("0", 40), "buildDate=2026-01-01T00:00:00Z"} {
			s += fmt.Sprintf(" -X %s.%s", p, kv)
		}
	}
	return s
}
