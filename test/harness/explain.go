package harness

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Explain collects what a person needs who asks why a Pod of a namespace does not
// do what it should: the Pods, their events, and the ends of the agents' and
// kubelets' logs.
func (c *Cluster) Explain(ctx context.Context, namespace string, nodes ...string) string {
	var b strings.Builder
	pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintln(&b, err)
		pods = &corev1.PodList{}
	}
	for i := range pods.Items {
		fmt.Fprintf(&b, "Pod %s: %s\n", pods.Items[i].Name, describe(&pods.Items[i]))
	}
	events, err := c.Kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintln(&b, err)
		events = &corev1.EventList{}
	}
	for _, e := range events.Items {
		fmt.Fprintf(&b, "event of %s %s: %s: %s\n", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
	}
	for _, node := range nodes {
		fmt.Fprintf(&b, "--- agent on %s\n%s", node, c.AgentLog(ctx, node, 25))
		log, err := c.Run(ctx, "logs", node+"-kubelet")
		if err != nil {
			log = err.Error()
		}
		fmt.Fprintf(&b, "--- kubelet on %s\n%s", node, tail(log, 15))
	}
	return b.String()
}

// AgentLog is the end of the log of a node's agent, and of the one before it where
// the container was restarted.
func (c *Cluster) AgentLog(ctx context.Context, node string, lines int64) string {
	pod, err := c.Agent(ctx, node)
	if err != nil {
		return err.Error() + "\n"
	}
	var all string
	for _, previous := range []bool{true, false} {
		if previous && (len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].RestartCount == 0) {
			continue
		}
		log, err := c.Kube.CoreV1().Pods(Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Previous: previous, TailLines: ptr.To(lines)}).DoRaw(ctx)
		if err != nil {
			log = []byte(err.Error() + "\n")
		}
		all += string(log)
	}
	return all
}

// tail is the last lines of a text.
func tail(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	return strings.Join(all[max(0, len(all)-lines-1):], "")
}
