package config

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

// Etcd is etcd's command line. Its data need not outlive a power cut.
func Etcd(c *state.Cluster) []string {
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	return []string{filepath.Join(c.Bin, "etcd"),
		"--name=etcd", "--data-dir=" + c.Etcd(), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=etcd=" + peer}
}

// APIServer is kube-apiserver's command line. There is no kube-proxy, hence
// the routing of webhooks straight to endpoints.
func APIServer(c *state.Cluster) []string {
	p := c.PKI() + "/"
	argv := []string{filepath.Join(c.Bin, "kube-apiserver"),
		"--etcd-servers=http://127.0.0.1:2379",
		"--bind-address=0.0.0.0", "--secure-port=443", "--advertise-address=" + ControlPlaneIP,
		"--endpoint-reconciler-type=none", "--enable-aggregator-routing=true",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--anonymous-auth=false", "--allow-privileged=true",
		"--client-ca-file=" + p + "ca.crt",
		"--tls-cert-file=" + p + "apiserver.crt", "--tls-private-key-file=" + p + "apiserver.key",
		"--requestheader-client-ca-file=" + p + "ca.crt", "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p + "front-proxy.crt", "--proxy-client-key-file=" + p + "front-proxy.key",
		"--kubelet-preferred-address-types=InternalIP", "--kubelet-certificate-authority=" + p + "ca.crt",
		"--kubelet-client-certificate=" + p + "kubelet-client.crt", "--kubelet-client-key=" + p + "kubelet-client.key",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + p + "sa.pub", "--service-account-signing-key-file=" + p + "sa.key",
		"--service-cluster-ip-range=" + ServiceRange,
	}
	if c.RuntimeConfig != "" {
		argv = append(argv, "--runtime-config="+c.RuntimeConfig)
	}
	return append(argv, gates(c)...)
}

// ControllerManager is kube-controller-manager's command line. At its usual rate it
// would take 5 s to get a token for each of its controllers.
func ControllerManager(c *state.Cluster) []string {
	p, conf := c.PKI()+"/", kubeconfig(c, "kube-controller-manager")
	return append([]string{filepath.Join(c.Bin, "kube-controller-manager"),
		"--kubeconfig=" + conf, "--authentication-kubeconfig=" + conf, "--authorization-kubeconfig=" + conf,
		"--bind-address=127.0.0.1", "--leader-elect=false", "--use-service-account-credentials=true",
		"--kube-api-qps=300", "--kube-api-burst=500",
		"--service-account-private-key-file=" + p + "sa.key", "--root-ca-file=" + p + "ca.crt",
		"--cluster-signing-cert-file=" + p + "ca.crt", "--cluster-signing-key-file=" + p + "ca.key",
	}, gates(c)...)
}

// Scheduler is kube-scheduler's command line. It needs WriteScheduler's file.
func Scheduler(c *state.Cluster) []string {
	conf := kubeconfig(c, "kube-scheduler")
	return append([]string{filepath.Join(c.Bin, "kube-scheduler"),
		"--config=" + schedulerFile(c), "--bind-address=127.0.0.1",
		"--authentication-kubeconfig=" + conf, "--authorization-kubeconfig=" + conf,
	}, gates(c)...)
}

// WriteScheduler writes the scheduler's configuration.
func WriteScheduler(c *state.Cluster) error {
	return os.WriteFile(schedulerFile(c), fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %s}
`, kubeconfig(c, "kube-scheduler")), 0o644)
}

func schedulerFile(c *state.Cluster) string { return filepath.Join(c.PKI(), "scheduler.yaml") }

func gates(c *state.Cluster) []string {
	if c.FeatureGates == "" {
		return nil
	}
	return []string{"--feature-gates=" + c.FeatureGates}
}
