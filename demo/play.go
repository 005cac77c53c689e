package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// play creates what the file has and tells what comes of it.
func (s scenario) play(ctx context.Context, on *stage, stay bool) ([]holding, error) {
	c := on.Cluster
	fmt.Printf("\n%s %s\n", strings.ReplaceAll(s.name(), "-", " "), dots(s.name(), "demo/scenarios/"+s.file))
	paragraph("asked", comment(s.manifest)...)
	if err := on.become(ctx, s.needs()); err != nil {
		return nil, err
	}
	objects, namespaces, err := s.objects()
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		if err := c.CreateNamespace(ctx, namespace, s.labels()); err != nil {
			return nil, err
		}
	}
	classes, err := offer(ctx, c, objects)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	pods, err := create(ctx, c, objects)
	if err != nil {
		return nil, err
	}
	held, err := s.watch(ctx, c, pods, began)
	if err != nil {
		return nil, err
	}
	if err := tell(ctx, c, classes, held); err != nil || stay {
		return held, err
	}
	for _, namespace := range namespaces {
		err = errors.Join(err, c.EmptyNamespace(ctx, namespace))
	}
	if len(classes) > 0 {
		err = errors.Join(err, c.DeleteClasses(ctx))
	}
	return held, err
}

// create makes the objects that are in namespaces, and returns the Pods, those of
// Deployments too.
func create(ctx context.Context, c *harness.Cluster, objects []runtime.Object) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	for _, o := range objects {
		if _, ok := o.(*v1alpha1.PartitionClass); ok {
			continue
		}
		object, err := meta.Accessor(o)
		if err != nil {
			return nil, err
		}
		if err := c.Create(ctx, object.GetNamespace(), o); err != nil {
			return nil, err
		}
		switch o := o.(type) {
		case *corev1.Pod:
			pods = append(pods, o)
		case *appsv1.Deployment:
			own, err := c.WaitPodsOf(ctx, o)
			if err != nil {
				return nil, err
			}
			pods = append(pods, own...)
		}
	}
	return pods, nil
}

// watch tells of each Pod. When one must wait, the first is deleted.
func (s scenario) watch(ctx context.Context, c *harness.Cluster, pods []*corev1.Pod, began time.Time) ([]holding, error) {
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
	h = holding{scenario: s, namespace: pod.Namespace, pod: name, took: time.Since(began)}
	grants, err := c.Granted(ctx, pod, pod.Spec.Containers[0])
	if err != nil {
		return h, "", err
	}
	published, err := c.WaitSlices(ctx, node, "its pool", func([]*resourceapi.ResourceSlice) bool { return true })
	if err != nil {
		return h, "", err
	}
	devices := harness.Devices(published)
	for _, g := range grants {
		h.pieces = append(h.pieces, piece{given(devices[g.Device], g.DeviceRequestAllocationResult), g.Class})
	}
	paragraph("given", fmt.Sprintf("Pod %s runs after %.1f s with %s", name, h.took.Seconds(), describe(h.pieces)))
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
