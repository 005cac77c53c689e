package harness

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/hack/toolbox"
)

// Values of the chart.
type Values map[string]any

// Install installs Dovetail with the chart and the pinned Helm, or changes the
// values of what is installed. It does not wait for the agents.
func (c *Cluster) Install(ctx context.Context, values Values) error {
	image, err := os.ReadFile(c.built("out/dovetail.tar"))
	if err != nil {
		return err
	}
	// The image's tag stays the same; this has Pods replaced when its content changes.
	all := Values{"podAnnotations": map[string]string{"dovetail.dev/image": fmt.Sprintf("%x", sha256.Sum256(image))}}
	maps.Copy(all, values)
	content, err := yaml.Marshal(all)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dovetail-values-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "values.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return err
	}
	chart := c.built("deployments/helm/dovetail")
	return c.helm(ctx, "upgrade", "--install", Release, chart, "--namespace", Namespace, "--create-namespace",
		"--values", filepath.Join(chart, "ci", "simulated-values.yaml"), "--values", file)
}

func (c *Cluster) helm(ctx context.Context, args ...string) error {
	path, err := toolbox.Path(ctx, "helm", os.Stderr)
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("helm %s: %w\n%s", args[0], err, out)
	}
	return nil
}
