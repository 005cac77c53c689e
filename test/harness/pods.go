package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/test/harness/seen"
)

// Ready says whether the Pod has the condition Ready.
func Ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// WaitPod waits until a Pod is as it should be. One that is gone is an error.
func (c *Cluster) WaitPod(ctx context.Context, namespace, name, what string, done func(*corev1.Pod) bool) (*corev1.Pod, error) {
	var last *corev1.Pod
	pod, err := WaitOne(ctx, c.Pods(namespace), name, fmt.Sprintf("Pod %s to %s", name, what), func(p *corev1.Pod) (bool, error) {
		if p == nil {
			if last != nil {
				return false, fmt.Errorf("the Pod is gone")
			}
			return false, nil
		}
		last = p
		return done(p), nil
	})
	if err != nil && last != nil {
		err = fmt.Errorf("%w; it is %s", err, describe(last))
	}
	return pod, err
}

// WaitReady waits until all of a Pod's containers run.
func (c *Cluster) WaitReady(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return c.WaitPod(ctx, namespace, name, "be ready", Ready)
}

// WaitGone waits until a Pod, as an object, is gone; the kubelet lets it go once its
// claims are released.
func (c *Cluster) WaitGone(ctx context.Context, namespace, name string) error {
	_, err := WaitOne(ctx, c.Pods(namespace), name, fmt.Sprintf("Pod %s to go", name), func(p *corev1.Pod) (bool, error) { return p == nil, nil })
	return err
}

// DeletePod deletes a Pod and waits until it is gone.
func (c *Cluster) DeletePod(ctx context.Context, namespace, name string) error {
	if err := c.Kube.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return c.WaitGone(ctx, namespace, name)
}

// describe says in a line how a Pod is.
func describe(p *corev1.Pod) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %q", p.Status.Phase, p.Spec.NodeName)
	for _, condition := range p.Status.Conditions {
		if condition.Status != corev1.ConditionTrue && condition.Message != "" {
			fmt.Fprintf(&b, "; %s: %s", condition.Type, condition.Message)
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil {
			fmt.Fprintf(&b, "; container %s waits: %s %s", s.Name, w.Reason, w.Message)
		}
		if t := s.State.Terminated; t != nil {
			fmt.Fprintf(&b, "; container %s ended: %s %d %s", s.Name, t.Reason, t.ExitCode, t.Message)
		}
	}
	return b.String()
}

// Seen reads what a container with podcheck says of its GPUs.
func (c *Cluster) Seen(ctx context.Context, namespace, pod, container string) (*seen.Report, error) {
	report := &seen.Report{}
	err := c.firstLines(ctx, namespace, pod, container, func(line string) (bool, error) {
		return true, json.Unmarshal([]byte(line), report)
	})
	if err == nil && len(report.Errors) > 0 {
		err = fmt.Errorf("the Pod could not look at everything: %s", strings.Join(report.Errors, "; "))
	}
	if err != nil {
		return nil, fmt.Errorf("what %s/%s saw: %w", pod, container, err)
	}
	return report, nil
}

// Words reads what a container with podcheck tells people.
func (c *Cluster) Words(ctx context.Context, namespace, pod, container string) ([]string, error) {
	var words []string
	err := c.firstLines(ctx, namespace, pod, container, func(line string) (bool, error) {
		if line == seen.LastWord {
			return true, nil
		}
		words = append(words, line)
		return false, nil
	})
	return words, err
}

// firstLines follows a container's log until enough says so.
func (c *Cluster) firstLines(ctx context.Context, namespace, pod, container string, enough func(line string) (bool, error)) error {
	stream, err := c.Kube.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, Follow: true}).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if done, err := enough(lines.Text()); done || err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// WaitEvent waits for an event about an object: what is a word of it, and part its
// reason or message.
func (c *Cluster) WaitEvent(ctx context.Context, namespace, kind, name string, match func(corev1.Event) bool) (*corev1.Event, error) {
	s := Set{Client: c.Kube.CoreV1().RESTClient(), Resource: "events", Namespace: namespace, Fields: fields.Set{
		"involvedObject.kind": kind, "involvedObject.name": name,
	}}
	var found *corev1.Event
	var all []*corev1.Event
	_, err := Wait(ctx, s, fmt.Sprintf("an event about %s %s", kind, name), func(events []*corev1.Event) (bool, error) {
		all = events
		for _, e := range events {
			if match(*e) {
				found = e
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		for _, e := range all {
			err = fmt.Errorf("%w\n  there is: %s %s", err, e.Reason, e.Message)
		}
	}
	return found, err
}

// Event matches by reason and by parts of the message.
func Event(reason string, parts ...string) func(corev1.Event) bool {
	return func(e corev1.Event) bool {
		if e.Reason != reason {
			return false
		}
		for _, part := range parts {
			if !strings.Contains(e.Message, part) {
				return false
			}
		}
		return true
	}
}

// WaitPodsOf waits until all of a Deployment's Pods are there, ready or not.
func (c *Cluster) WaitPodsOf(ctx context.Context, d *appsv1.Deployment) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, err
	}
	var own []*corev1.Pod
	_, err = Wait(ctx, c.Pods(d.Namespace), "the Pods of Deployment "+d.Name, func(pods []*corev1.Pod) (bool, error) {
		own = slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !selector.Matches(labels.Set(p.Labels)) })
		return len(own) == int(ptr.Deref(d.Spec.Replicas, 1)), nil
	})
	slices.SortFunc(own, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return own, err
}
