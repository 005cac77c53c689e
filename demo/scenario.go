package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// scenario is one of the files in demo/scenarios.
type scenario struct {
	file     string
	manifest string
}

// holding is what one Pod was given.
type holding struct {
	scenario, namespace, pod string
	devices                  []resourceapi.Device
	took                     time.Duration
}

func read(dir string) ([]scenario, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	var scenarios []scenario
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		scenarios = append(scenarios, scenario{file: filepath.Base(path), manifest: string(content)})
	}
	return scenarios, nil
}

// number is what a file's name begins with.
func number(path string) int {
	digits, _, _ := strings.Cut(filepath.Base(path), "-")
	n, _ := strconv.Atoi(digits) // without a number it comes first
	return n
}

// name is the file's, without its ending.
func (s scenario) name() string { return strings.TrimSuffix(s.file, ".yaml") }

func (s scenario) namespace() string { return "demo-" + s.name() }

// labels of the namespace: admin access needs one.
func (s scenario) labels() map[string]string {
	if strings.Contains(s.manifest, "adminAccess: true") {
		return map[string]string{"resource.kubernetes.io/admin-access": "true"}
	}
	return nil
}

// asked is the comment on top of the file.
func (s scenario) asked() []string {
	var lines []string
	for line := range strings.Lines(s.manifest) {
		text, ok := strings.CutPrefix(line, "# ")
		if !ok {
			break
		}
		lines = append(lines, strings.TrimSpace(text))
	}
	return lines
}

// objects of the file, each in a namespace of the scenario's own, and those namespaces.
func (s scenario) objects() (objects []runtime.Object, namespaces []string, err error) {
	if objects, err = harness.Objects(s.manifest); err != nil {
		return nil, nil, err
	}
	for _, o := range objects {
		object, err := meta.Accessor(o)
		if err != nil {
			return nil, nil, err
		}
		namespace := s.namespace()
		if own := object.GetNamespace(); own != "" {
			namespace += "-" + own
		}
		object.SetNamespace(namespace)
		if !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	return objects, namespaces, nil
}

// play creates what the file has and tells what comes of it.
func (s scenario) play(ctx context.Context, c *harness.Cluster, stay bool) ([]holding, error) {
	fmt.Printf("\n%s %s\n", strings.ReplaceAll(s.name(), "-", " "), dots(s.name(), "demo/scenarios/"+s.file))
	paragraph("asked", s.asked()...)
	objects, namespaces, err := s.objects()
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		if err := c.CreateNamespace(ctx, namespace, s.labels()); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	var pods []*corev1.Pod
	for _, o := range objects {
		object, err := meta.Accessor(o)
		if err != nil {
			return nil, err
		}
		if err := c.Create(ctx, object.GetNamespace(), o); err != nil {
			return nil, err
		}
		if pod, ok := o.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	var held []holding
	for _, pod := range pods {
		h, waits, err := s.see(ctx, c, pod, began)
		if err != nil {
			return nil, err
		}
		if waits != "" {
			paragraph("waits", pod.Name+": "+waits)
			paragraph("then", fmt.Sprintf("Pod %s is deleted", pods[0].Name))
			began = time.Now()
			if err := c.DeletePod(ctx, pods[0].Namespace, pods[0].Name); err != nil {
				return nil, err
			}
			if _, err := c.WaitReady(ctx, pod.Namespace, pod.Name); err != nil {
				return nil, err
			}
			if h, _, err = s.see(ctx, c, pod, began); err != nil {
				return nil, err
			}
		}
		held = append(held, h)
	}
	if stay {
		return held, nil
	}
	for _, namespace := range namespaces {
		if err := c.EmptyNamespace(ctx, namespace); err != nil {
			return nil, err
		}
	}
	return held, nil
}

// see tells what a Pod was given and what it saw; or, in words, why it waits.
func (s scenario) see(ctx context.Context, c *harness.Cluster, created *corev1.Pod, began time.Time) (h holding, waits string, err error) {
	name := created.Name
	pod, err := c.WaitPod(ctx, created.Namespace, name, "start, or to be told that it must wait", func(p *corev1.Pod) bool {
		waits = unschedulable(p)
		return harness.Ready(p) || waits != ""
	})
	if err != nil || !harness.Ready(pod) {
		return h, waits, err
	}
	h = holding{scenario: s.name(), namespace: pod.Namespace, pod: name, took: time.Since(began)}
	results, err := c.Allocated(ctx, pod, pod.Spec.Containers[0])
	if err != nil {
		return h, "", err
	}
	published, err := c.WaitSlices(ctx, node, "its pool", func([]*resourceapi.ResourceSlice) bool { return true })
	if err != nil {
		return h, "", err
	}
	devices := harness.Devices(published)
	for _, r := range results {
		h.devices = append(h.devices, given(devices[r.Device], r))
	}
	paragraph("given", fmt.Sprintf("Pod %s runs after %.1f s with %s", name, h.took.Seconds(), describe(h.devices)))
	tells := c.Words
	if harness.UsesCUDA(pod.Spec.Containers[0]) {
		tells = c.CUDAWords
	}
	words, err := tells(ctx, pod.Namespace, name, pod.Spec.Containers[0].Name)
	if err != nil {
		return h, "", err
	}
	paragraph("saw", words...)
	return h, "", nil
}

// given is what was allocated of a device: of a shared one, a part of its memory.
func given(d resourceapi.Device, r resourceapi.DeviceRequestAllocationResult) resourceapi.Device {
	d = *d.DeepCopy()
	for name, amount := range r.ConsumedCapacity {
		d.Capacity[name] = resourceapi.DeviceCapacity{Value: amount}
	}
	return d
}

// unschedulable is why the scheduler finds no place for a Pod.
func unschedulable(p *corev1.Pod) string {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
	if i < 0 {
		return ""
	}
	message, _, _ := strings.Cut(p.Status.Conditions[i].Message, " preemption:")
	return message
}
