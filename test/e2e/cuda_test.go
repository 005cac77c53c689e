package e2e

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/simulator/cuda"
	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
)

// cudaImage has a program that uses CUDA.
const cudaImage = "registry.local/dovetail-cuda:dev"

// uses has the Pod's containers allocate memory of their first device, then do what
// else is said, and hold what they got.
func uses(memory string, then ...string) option {
	args := []string{cuda.Name, "--hold", "--allocate", memory}
	for _, command := range then {
		args = append(args, "--then", command)
	}
	return func(p *corev1.Pod) {
		for i := range p.Spec.Containers {
			c := &p.Spec.Containers[i]
			c.Image, c.Args = cudaImage, args
			c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		}
	}
}

// fills is uses with what a limit allows, and then with more.
func fills(memory, beyond string) option { return uses(memory, "allocate "+beyond) }

// nonRoot runs the Pod as somebody else.
func nonRoot(p *corev1.Pod) {
	p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](65532), RunAsGroup: ptr.To[int64](65532), RunAsNonRoot: ptr.To(true)}
}

// once lets the Pod end with its program.
func once(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }

// limited waits until each container of a Pod that fills its limit has what it may
// have, and was refused more, and returns what their programs saw.
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

// runs starts one more process that uses CUDA in a Pod's first container, and returns
// what it says.
func (e *env) runs(pod string, args ...string) cuda.Line {
	e.Helper()
	argv := append([]string{"kubectl", "--namespace", e.namespace, "exec", pod, "--", "/usr/bin/dovetail-sim-tools", cuda.Name}, args...)
	out, failed := e.Cluster.Run(e.ctx, argv...)
	var line cuda.Line
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&line); err != nil {
		e.Fatalf("a process in Pod %s says %q: %v", pod, out, failed)
	}
	return line
}
