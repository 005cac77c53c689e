package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

// PauseImage is the image of every Pod's sandbox.
const PauseImage = "registry.local/pause:1"

// ContainerdSocket is where a node's containerd listens, in the node's own /run.
const ContainerdSocket = "/run/containerd/containerd.sock"

// Containerd is containerd's command line.
func Containerd(c *state.Cluster, node string) []string {
	return []string{filepath.Join(c.Bin, "containerd"), "--config", filepath.Join(c.Node(node), "containerd.toml")}
}

// Kubelet is kubelet's command line.
func Kubelet(c *state.Cluster, node string) ([]string, error) {
	i, err := c.Index(node)
	return []string{filepath.Join(c.Bin, "kubelet"),
		"--config=" + filepath.Join(c.Node(node), "kubelet.yaml"), "--kubeconfig=" + kubeconfig(c, node),
		"--hostname-override=" + node, "--node-ip=" + NodeIP(i), "--v=2"}, err
}

// WriteNode writes the configuration of a node's containerd, kubelet and CNI. It
// runs on the node, so that /etc/cni/net.d is the node's own.
func WriteNode(c *state.Cluster, node string) error {
	i, err := c.Index(node)
	if err != nil {
		return err
	}
	gates, err := ParseGates(c.FeatureGates)
	if err != nil {
		return err
	}
	for file, text := range map[string]string{
		filepath.Join(c.Node(node), "containerd.toml"): containerdTOML(c.Bin),
		filepath.Join(c.Node(node), "kubelet.yaml"):    kubeletYAML(c, node, gates),
		"/etc/cni/net.d/10-dovetail.conflist":          cniConflist(i),
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// containerdTOML: restrict_oom_score_adj is for machines without CAP_SYS_RESOURCE,
// where a lower score than the own one cannot be set; disable_apparmor keeps
// containerd from loading a profile into the machine's kernel, which would stay.
func containerdTOML(bin string) string {
	return fmt.Sprintf(`version = 3
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = %q
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = %q
      SystemdCgroup = false
`, PauseImage, filepath.Join(bin, "runc"))
}

// kubeletYAML: the thresholds are off, since a test machine's disk may be full.
func kubeletYAML(c *state.Cluster, node string, gates []Gate) string {
	p := c.PKI()
	s := fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %[1]s/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: %[1]s/%[2]s.crt
tlsPrivateKeyFile: %[1]s/%[2]s.key
containerRuntimeEndpoint: unix://%[3]s
cgroupDriver: cgroupfs
cgroupRoot: /%[4]s
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
maxPods: 250
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%", imagefs.inodesFree: "0%%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
resolvConf: ""
syncFrequency: 2s
nodeStatusUpdateFrequency: 5s
volumePluginDir: /var/lib/kubelet/volume-plugins
`, p, node, ContainerdSocket, c.NodeGroup(node))
	if len(gates) > 0 {
		var list []string
		for _, g := range gates {
			list = append(list, fmt.Sprintf("%s: %t", g.Name, g.On))
		}
		s += "featureGates: {" + strings.Join(list, ", ") + "}\n"
	}
	return s
}

func cniConflist(i int) string {
	return fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "dovetail", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`, PodRange(i))
}
