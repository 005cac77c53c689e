package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// agentLabel is what all agents' Pods have.
const agentLabel = "app.kubernetes.io/component=node"

// Pods are those of a namespace.
func (c *Cluster) Pods(namespace string) Set {
	return Set{Client: c.Kube.CoreV1().RESTClient(), Resource: "pods", Namespace: namespace}
}

// Slices are those of a node.
func (c *Cluster) Slices(node string) Set {
	return Set{Client: c.Kube.ResourceV1().RESTClient(), Resource: "resourceslices", Fields: fields.Set{
		resourceapi.ResourceSliceSelectorNodeName: node, resourceapi.ResourceSliceSelectorDriver: Driver,
	}}
}

// WaitAgent waits until one agent serves on a node, and no other is on its way in
// or out.
func (c *Cluster) WaitAgent(ctx context.Context, node string) (*corev1.Pod, error) {
	pods, err := c.waitAgents(ctx, node, "the agent on "+node+" to be the only one, and ready", func(pods []*corev1.Pod) bool {
		return len(pods) == 1 && pods[0].DeletionTimestamp == nil && Ready(pods[0])
	})
	if err != nil {
		return nil, err
	}
	return pods[0], nil
}

// WaitNoAgent waits until no agent is on a node.
func (c *Cluster) WaitNoAgent(ctx context.Context, node string) error {
	_, err := c.waitAgents(ctx, node, "the agent to be gone from "+node, func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	return err
}

func (c *Cluster) waitAgents(ctx context.Context, node, what string, done func([]*corev1.Pod) bool) ([]*corev1.Pod, error) {
	s := c.Pods(Namespace)
	s.Fields = fields.Set{"spec.nodeName": node}
	var agents []*corev1.Pod
	_, err := Wait(ctx, s, what, func(pods []*corev1.Pod) (bool, error) {
		agents = slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
			return p.Labels["app.kubernetes.io/component"] != "node"
		})
		return done(agents), nil
	})
	return agents, err
}

// Agent is a node's agent as it is now; with two, during an upgrade, the newer.
func (c *Cluster) Agent(ctx context.Context, node string) (*corev1.Pod, error) {
	list, err := c.Kube.CoreV1().Pods(Namespace).List(ctx, metav1.ListOptions{LabelSelector: agentLabel, FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("no agent on %s", node)
	}
	newest := slices.MaxFunc(list.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return &newest, nil
}

// RestartAgent replaces a node's agent and waits for the new one.
func (c *Cluster) RestartAgent(ctx context.Context, node string) (*corev1.Pod, error) {
	pod, err := c.Agent(ctx, node)
	if err != nil {
		return nil, err
	}
	if err := c.Kube.CoreV1().Pods(Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	pods, err := c.waitAgents(ctx, node, "a new agent on "+node, func(pods []*corev1.Pod) bool {
		return len(pods) == 1 && pods[0].UID != pod.UID && Ready(pods[0])
	})
	if err != nil {
		return nil, err
	}
	return pods[0], nil
}

// WaitSlices waits until what a node publishes is as it should be.
func (c *Cluster) WaitSlices(ctx context.Context, node, what string, done func([]*resourceapi.ResourceSlice) bool) ([]*resourceapi.ResourceSlice, error) {
	return Wait(ctx, c.Slices(node), node+" to publish "+what, func(slices []*resourceapi.ResourceSlice) (bool, error) {
		return Complete(slices) && done(slices), nil
	})
}

// Complete says whether a pool is there whole: the scheduler looks at no other.
func Complete(slices []*resourceapi.ResourceSlice) bool {
	if len(slices) == 0 {
		return false
	}
	for _, s := range slices {
		if s.Spec.Pool.Generation != slices[0].Spec.Pool.Generation {
			return false
		}
	}
	return int(slices[0].Spec.Pool.ResourceSliceCount) == len(slices)
}

// Devices are all devices in slices, by name.
func Devices(slices []*resourceapi.ResourceSlice) map[string]resourceapi.Device {
	devices := map[string]resourceapi.Device{}
	for _, s := range slices {
		for _, d := range s.Spec.Devices {
			devices[d.Name] = d
		}
	}
	return devices
}

// GPUs are the whole GPUs in slices, by name.
func GPUs(slices []*resourceapi.ResourceSlice) map[string]resourceapi.Device {
	gpus := Devices(slices)
	maps.DeleteFunc(gpus, func(_ string, d resourceapi.Device) bool {
		kind := d.Attributes["type"].StringValue
		return kind == nil || *kind != "gpu"
	})
	return gpus
}

// WaitGPUs waits until a node publishes that many whole GPUs.
func (c *Cluster) WaitGPUs(ctx context.Context, node string, count int) (map[string]resourceapi.Device, error) {
	slices, err := c.WaitSlices(ctx, node, fmt.Sprintf("%d GPUs", count), func(slices []*resourceapi.ResourceSlice) bool {
		return len(GPUs(slices)) == count
	})
	return GPUs(slices), err
}

// Metric is the value of one of the agent's metrics on a node, as text; empty
// where it has none. series is written as in the exposition: name{label="value"}.
func (c *Cluster) Metric(ctx context.Context, node, series string) (string, error) {
	pod, err := c.Agent(ctx, node)
	if err != nil {
		return "", err
	}
	content, err := c.Kube.CoreV1().RESTClient().Get().Namespace(Namespace).Resource("pods").
		Name(pod.Name + ":8080").SubResource("proxy").Suffix("metrics").DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("metrics of the agent on %s: %w", node, err)
	}
	for line := range strings.SplitSeq(string(content), "\n") {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return value, nil
		}
	}
	return "", nil
}

// Label sets a node's label, or removes it where value is empty.
func (c *Cluster) Label(ctx context.Context, node, name, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{name: orNull(value)}}})
	if err != nil {
		return err
	}
	_, err = c.Kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
