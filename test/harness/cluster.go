// Package harness is what the end-to-end tests, the demo and the benchmarks share:
// a real cluster with simulated machines, Dovetail installed on it, and eyes for
// all of it. It waits by watching and never sleeps; contexts bound every wait.
package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dovetail-dra/dovetail/pkg/classwatch"
)

// Names of what is installed.
const (
	Namespace = "dovetail-system"
	Release   = "dovetail"
	Driver    = "dovetail.dev"
)

// Cluster is the cluster in whose network this process runs.
type Cluster struct {
	Launcher
	Kube   kubernetes.Interface
	Config *rest.Config
	// Root is the repository.
	Root string
	// classes is a client of PartitionClasses.
	classes rest.Interface
}

// Open finds the cluster in whose network this process runs.
func Open() (*Cluster, error) {
	if !Inside() {
		return nil, fmt.Errorf("%s is not set: run this within `cluster run`", EnvLauncher)
	}
	c := &Cluster{Launcher: Launcher{Path: os.Getenv(EnvLauncher), Name: os.Getenv(EnvName)}}
	var err error
	if c.Root, err = Root(); err != nil {
		return nil, err
	}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")); err != nil {
		return nil, err
	}
	c.Config.QPS, c.Config.Burst = 200, 400
	c.Config.UserAgent = "dovetail-harness"
	if c.classes, err = classwatch.Client(c.Config); err != nil {
		return nil, err
	}
	c.Kube, err = kubernetes.NewForConfig(c.Config)
	return c, err
}

// built is something that make has built.
func (c *Cluster) built(name string) string { return filepath.Join(c.Root, name) }

// need says what is missing of what make builds.
func (c *Cluster) need(names ...string) error {
	for _, name := range names {
		if _, err := os.Stat(c.built(name)); err != nil {
			return fmt.Errorf("%w: `make cluster-images` builds it", err)
		}
	}
	return nil
}

// LoadImages puts on every node the images of Dovetail, of the checker, and of a
// program that uses CUDA.
func (c *Cluster) LoadImages(ctx context.Context) error {
	images := []string{"out/dovetail.tar", "out/podcheck.tar", "out/cuda.tar"}
	if err := c.need(images...); err != nil {
		return err
	}
	load := []string{"load"}
	for _, image := range images {
		load = append(load, c.built(image))
	}
	_, err := c.Run(ctx, load...)
	return err
}
