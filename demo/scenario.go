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

	"github.com/dovetail-dra/dovetail/test/harness"
)

// scenario is one of the files in demo/scenarios.
type scenario struct {
	file     string
	manifest string
}

// holding is what one Pod was given.
type holding struct {
	scenario, pod string
	devices       []resourceapi.Device
	took          time.Duration
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

// play creates what the file has and tells what comes of it.
func (s scenario) play(ctx context.Context, c *harness.Cluster, stay bool) ([]holding, error) {
	fmt.Printf("\n%s %s\n", strings.ReplaceAll(s.name(), "-", " "), dots(s.name(), "demo/scenarios/"+s.file))
	paragraph("asked", s.asked()...)
	objects, err := harness.Objects(s.manifest)
	if err != nil {
		return nil, err
	}
	if err := c.CreateNamespace(ctx, s.namespace(), s.labels()); err != nil {
		return nil, err
	}
	began := time.Now()
	var pods []string
	for _, o := range objects {
		if err := c.Create(ctx, s.namespace(), o); err != nil {
			return nil, err
		}
		if pod, ok := o.(*corev1.Pod); ok {
			pods = append(pods, pod.Name)
		}
	}
	var held []holding
	for _, pod := range pods {
		h, waits, err := s.see(ctx, c, pod, began)
		if err != nil {
			return nil, err
		}
		if waits != "" {
			paragraph("waits", pod+": "+waits)
			paragraph("then", fmt.Sprintf("Pod %s is deleted", pods[0]))
			began = time.Now()
			if err := c.DeletePod(ctx, s.namespace(), pods[0]); err != nil {
				return nil, err
			}
			if _, err := c.WaitReady(ctx, s.namespace(), pod); err != nil {
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
	return held, c.EmptyNamespace(ctx, s.namespace())
}

// see tells what a Pod was given and what it saw; or, in words, why it waits.
func (s scenario) see(ctx context.Context, c *harness.Cluster, name string, began time.Time) (h holding, waits string, err error) {
	pod, err := c.WaitPod(ctx, s.namespace(), name, "start, or to be told that it must wait", func(p *corev1.Pod) bool {
		waits = unschedulable(p)
		return harness.Ready(p) || waits != ""
	})
	if err != nil || !harness.Ready(pod) {
		return h, waits, err
	}
	h = holding{scenario: s.name(), pod: name, took: time.Since(began)}
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
		h.devices = append(h.devices, devices[r.Device])
	}
	paragraph("given", fmt.Sprintf("Pod %s runs after %.1f s with %s", name, h.took.Seconds(), describe(h.devices)))
	words, err := c.Words(ctx, s.namespace(), name, pod.Spec.Containers[0].Name)
	if err != nil {
		return h, "", err
	}
	paragraph("saw", words...)
	return h, "", nil
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
