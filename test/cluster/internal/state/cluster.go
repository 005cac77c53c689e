// Package state is what the launcher keeps on disk about a cluster.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Base holds the state directories of all clusters, unless one is put elsewhere.
const Base = "/var/lib/dovetail-cluster"

// MaxNodes is how many nodes the address plan has room for.
const MaxNodes = 100

// Cluster is one cluster: what it was started with, and where its files are.
type Cluster struct {
	Name          string   `json:"name"`
	Dir           string   `json:"dir"`
	Bin           string   `json:"bin"`
	Images        string   `json:"images"`
	Nodes         []string `json:"nodes"`
	FeatureGates  string   `json:"featureGates,omitempty"`
	RuntimeConfig string   `json:"runtimeConfig,omitempty"`
}

var nameRE = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// New names a cluster. An empty dir means the default place.
func New(name, dir string) (*Cluster, error) {
	if !nameRE.MatchString(name) {
		return nil, fmt.Errorf("cluster name %q: use up to 32 of a-z, 0-9 and -, beginning and ending with a letter or digit", name)
	}
	if dir == "" {
		dir = filepath.Join(Base, name)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	// A socket's path has at most 107 bytes; ours is DIR/nodes/node-100/control.sock.
	if len(dir) > 75 {
		return nil, fmt.Errorf("state directory %s: at most 75 characters, so that sockets fit into it; give a shorter --state-dir", dir)
	}
	return &Cluster{Name: name, Dir: dir}, nil
}

// NodeNames returns the names of n nodes.
func NodeNames(n int) ([]string, error) {
	if n < 1 || n > MaxNodes {
		return nil, fmt.Errorf("%d nodes: give a number from 1 to %d", n, MaxNodes)
	}
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("node-%d", i+1))
	}
	return out, nil
}

// Index returns a node's number, from 1 on.
func (c *Cluster) Index(node string) (int, error) {
	i := slices.Index(c.Nodes, node)
	if i < 0 {
		return 0, fmt.Errorf("no node %q in cluster %s; it has %v", node, c.Name, c.Nodes)
	}
	return i + 1, nil
}

// Group is the cluster's cgroup.
func (c *Cluster) Group() string { return "dovetail-" + c.Name }

// NodeGroup is a node's cgroup.
func (c *Cluster) NodeGroup(node string) string { return filepath.Join(c.Group(), node) }

// Paths in the state directory.
func (c *Cluster) path(p ...string) string     { return filepath.Join(append([]string{c.Dir}, p...)...) }
func (c *Cluster) File() string                { return c.path("cluster.json") }
func (c *Cluster) RunFile() string             { return c.path("run.json") }
func (c *Cluster) PKI() string                 { return c.path("pki") }
func (c *Cluster) Kubeconfig() string          { return c.path("kubeconfig") }
func (c *Cluster) Logs() string                { return c.path("logs") }
func (c *Cluster) Log(component string) string { return c.path("logs", component+".log") }
func (c *Cluster) Etcd() string                { return c.path("etcd") }
func (c *Cluster) Control() string             { return c.path("control.sock") }
func (c *Cluster) Node(node string) string     { return c.path("nodes", node) }
func (c *Cluster) NodeControl(node string) string {
	return c.path("nodes", node, "control.sock")
}

// NodePath is where a node's own version of a host path is kept.
func (c *Cluster) NodePath(node, hostPath string) string {
	return filepath.Join(c.Node(node), "root", hostPath)
}

// Create makes the state directory and writes down what the cluster is.
func (c *Cluster) Create() error {
	_ = os.Remove(c.File() + ".tmp") // of an `up` that was killed
	if entries, err := os.ReadDir(c.Dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("state directory %s is not empty and holds no cluster; give another --state-dir", c.Dir)
	}
	dirs := []string{c.PKI(), c.Logs(), c.Etcd()}
	for _, n := range c.Nodes {
		dirs = append(dirs, c.Node(n))
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	if err := WriteJSON(c.File(), c); err != nil {
		return err
	}
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Load reads back what Create wrote. ErrNotExist means that there is no cluster.
func (c *Cluster) Load() error {
	b, err := os.ReadFile(c.File())
	if err != nil {
		return err
	}
	var found Cluster
	if err := json.Unmarshal(b, &found); err != nil {
		return fmt.Errorf("%s is damaged: %w; `down` removes it", c.File(), err)
	}
	if found.Name != c.Name {
		return fmt.Errorf("%s belongs to cluster %q, not %q: give the matching --name and --state-dir", c.Dir, found.Name, c.Name)
	}
	*c = found
	return nil
}

// WriteJSON replaces a file as a whole.
func WriteJSON(file string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	tmp := file + ".tmp"
	return errors.Join(os.WriteFile(tmp, append(b, '\n'), 0o644), os.Rename(tmp, file))
}
