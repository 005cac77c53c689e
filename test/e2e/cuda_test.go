package e2e

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/dovetail-dra/dovetail/pkg/simulator/cuda"
	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
)

// cudaImage has a program that uses CUDA.
const cudaImage = "registry.local/dovetail-cuda:dev"

// uses has the Pod's containers allocate memory of their first device, try to get more
// than they may have, and hold what they got.
func uses(within, beyond string) option {
	return func(p *corev1.Pod) {
		for i := range p.Spec.Containers {
			c := &p.Spec.Containers[i]
			c.Image, c.Args = cudaImage, []string{cuda.Name, "--allocate", within, "--then", "allocate " + beyond, "--hold"}
			c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		}
	}
}

// limited waits until each of a Pod's containers has what it may have, and was refused
// more, and returns what they know of themselves.
func (e *env) limited(pod string) []cuda.Line {
	e.Helper()
	var got []cuda.Line
	for _, c := range e.ready(pod).Spec.Containers {
		lines, err := e.CUDA(e.ctx, e.namespace, pod, c.Name, 2)
		e.must(err)
		if lines[0].Error != "" || lines[0].MPS == nil || lines[1].Error != mps.ErrOutOfMemory {
			e.Fatalf("Pod %s, container %s: %+v; want that it is refused what is beyond its limit", pod, c.Name, lines)
		}
		got = append(got, lines[0])
	}
	return got
}
