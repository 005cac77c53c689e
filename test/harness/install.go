package harness

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/hack/toolbox"
)

// Chart is where the chart lies in the repository.
const Chart = "deployments/helm/dovetail"

// Values of the chart.
type Values map[string]any

// Install installs Dovetail with the chart and the pinned Helm, or changes the
// values of what is installed. It does not wait for what then starts.
func (c *Cluster) Install(ctx context.Context, values Values) error {
	return c.InstallFrom(ctx, c.built(Chart), values)
}

// InstallFrom is Install with a chart that lies elsewhere.
func (c *Cluster) InstallFrom(ctx context.Context, chart string, values Values) error {
	image, err := os.ReadFile(c.built("out/dovetail.tar"))
	if err != nil {
		return err
	}
	// The image's tag stays the same; this has Pods replaced when its content changes.
	mark := map[string]string{"dovetail.dev/image": fmt.Sprintf("%x", sha256.Sum256(image))}
	dir, err := os.MkdirTemp("", "dovetail-values-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	args := []string{"upgrade", "--install", Release, chart, "--namespace", Namespace, "--create-namespace",
		"--values", filepath.Join(chart, "ci", "simulated-values.yaml")}
	for i, part := range []Values{{"podAnnotations": mark, "controller": Values{"podAnnotations": mark}}, values} {
		content, err := yaml.Marshal(part)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, fmt.Sprintf("values-%d.yaml", i))
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return err
		}
		args = append(args, "--values", file)
	}
	return c.helm(ctx, args...)
}

// Uninstall removes what Install has installed, but for the CustomResourceDefinition,
// and does not wait.
func (c *Cluster) Uninstall(ctx context.Context) error {
	return c.helm(ctx, "uninstall", Release, "--namespace", Namespace)
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
