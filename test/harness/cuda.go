package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dovetail-dra/dovetail/pkg/simulator/cuda"
)

// CUDA reads the first lines of a container whose program uses CUDA: what it got, and
// what its commands came to.
func (c *Cluster) CUDA(ctx context.Context, namespace, pod, container string, count int) ([]cuda.Line, error) {
	var lines []cuda.Line
	err := c.firstLines(ctx, namespace, pod, container, func(text string) (bool, error) {
		var line cuda.Line
		err := json.Unmarshal([]byte(text), &line)
		lines = append(lines, line)
		return len(lines) == count, err
	})
	if err != nil {
		err = fmt.Errorf("what CUDA said in %s/%s, %s, after %+v: %w", namespace, pod, container, lines, err)
	}
	return lines, err
}

// UsesCUDA says whether a container's program is one that uses CUDA.
func UsesCUDA(c corev1.Container) bool { return slices.Contains(c.Args, cuda.Name) }

// CUDAWords tells people what a program that uses CUDA got at first, and what its one
// command came to.
func (c *Cluster) CUDAWords(ctx context.Context, namespace, pod, container string) ([]string, error) {
	lines, err := c.CUDA(ctx, namespace, pod, container, 2)
	var words []string
	for _, l := range lines {
		if m := l.MPS; m != nil && len(m.Devices) == 1 {
			words = append(words, fmt.Sprintf("MPS gives me %d of the GPU's multiprocessors (%.0f percent)", m.Devices[0].Multiprocessors, m.Percentage))
		}
		if l.Error != "" {
			words = append(words, "I am refused more: "+l.Error+", "+l.Message)
			continue
		}
		words = append(words, fmt.Sprintf("I have allocated %.0f GiB", float64(l.Allocated)/(1<<30)))
	}
	return words, err
}
