package harness

import (
	"context"
	"encoding/json"
	"fmt"

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
