package e2e

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// image of podcheck, which tells what a Pod holds.
const image = "registry.local/dovetail-podcheck:dev"

// option changes a Pod before it is created.
type option func(*corev1.Pod)

// fromTemplate gives all containers a claim of their own Pod's.
func fromTemplate(template string) option {
	return claimRef(corev1.PodResourceClaim{Name: template, ResourceClaimTemplateName: &template})
}

// fromClaim gives all containers a claim that may be shared with other Pods.
func fromClaim(claim string) option {
	return claimRef(corev1.PodResourceClaim{Name: claim, ResourceClaimName: &claim})
}

func claimRef(c corev1.PodResourceClaim) option {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, c)
		for i := range p.Spec.Containers {
			r := &p.Spec.Containers[i].Resources
			r.Claims = append(r.Claims, corev1.ResourceClaim{Name: c.Name})
		}
	}
}

// on places a Pod by its node's label, through the scheduler.
func on(node string) option {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": node} }
}

// containers sets how many containers the Pod has: "main", "second".
func containers(names ...string) option {
	return func(p *corev1.Pod) {
		first := p.Spec.Containers[0]
		p.Spec.Containers = nil
		for _, name := range names {
			c := *first.DeepCopy()
			c.Name = name
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}
}

// only gives a container one request of a claim, or nothing at all.
func only(container, request, claim string) option {
	return func(p *corev1.Pod) {
		for i := range p.Spec.Containers {
			if c := &p.Spec.Containers[i]; c.Name == container {
				c.Resources.Claims = nil
				if request != "" {
					c.Resources.Claims = []corev1.ResourceClaim{{Name: claim, Request: request}}
				}
			}
		}
	}
}

// args are podcheck's.
func args(a ...string) option {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Args = a }
}

// pod creates a Pod that runs podcheck.
func (e *env) pod(name string, options ...option) {
	e.Helper()
	_, err := e.Kube.CoreV1().Pods(e.namespace).Create(e.ctx, newPod(name, options...), metav1.CreateOptions{})
	e.must(err)
}

func newPod(name string, options ...option) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			AutomountServiceAccountToken:  ptr.To(false),
			Containers:                    []corev1.Container{{Name: "main", Image: image}},
		},
	}
	for _, o := range options {
		o(p)
	}
	return p
}
