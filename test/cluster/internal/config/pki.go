package config

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/pki"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

// WritePKI makes all certificates of a cluster and the kubeconfigs that use them.
func WritePKI(c *state.Cluster) error {
	dir := c.PKI()
	ca, err := pki.NewAuthority(dir)
	if err != nil {
		return err
	}
	for _, s := range subjects(c) {
		if err := ca.Issue(s); err != nil {
			return err
		}
	}
	if err := pki.ServiceAccountKeys(dir); err != nil {
		return err
	}
	for _, user := range append([]string{"admin", "kube-controller-manager", "kube-scheduler"}, c.Nodes...) {
		file := kubeconfig(c, user)
		if user == "admin" {
			file = c.Kubeconfig()
		}
		if err := os.WriteFile(file, []byte(Kubeconfig(dir, user)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func subjects(c *state.Cluster) []pki.Subject {
	masters := []string{"system:masters"}
	out := []pki.Subject{
		{File: "apiserver", Name: "kube-apiserver", Hosts: []string{"localhost", "kubernetes", "kubernetes.default",
			"kubernetes.default.svc", "127.0.0.1", ServiceIP, ControlPlaneIP}},
		{File: "front-proxy", Name: "front-proxy"},
		{File: "kubelet-client", Name: "apiserver-kubelet-client", Groups: masters},
		{File: "admin", Name: "admin", Groups: masters},
		{File: "kube-controller-manager", Name: "system:kube-controller-manager"},
		{File: "kube-scheduler", Name: "system:kube-scheduler"},
	}
	for i, n := range c.Nodes {
		out = append(out, pki.Subject{File: n, Name: "system:node:" + n, Groups: []string{"system:nodes"},
			Hosts: []string{n, NodeIP(i + 1)}})
	}
	return out
}

func kubeconfig(c *state.Cluster, user string) string {
	return filepath.Join(c.PKI(), user+".kubeconfig")
}

// Kubeconfig renders a client configuration for a user with a certificate in dir.
func Kubeconfig(dir, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: dovetail
  cluster:
    server: %s
    certificate-authority: %s/ca.crt
users:
- name: %[3]s
  user:
    client-certificate: %[2]s/%[3]s.crt
    client-key: %[2]s/%[3]s.key
contexts:
- name: dovetail
  context:
    cluster: dovetail
    user: %[3]s
current-context: dovetail
`, Server, dir, user)
}
