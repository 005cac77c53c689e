package harness

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names of what belongs to the controller.
const (
	ControllerName  = Release + "-controller"
	WebhookName     = Release + "-webhook"
	controllerLabel = "app.kubernetes.io/component=controller"
)

// WaitController waits until the controller's replicas are all of the newest version and
// ready, and the API server is told whom to trust.
func (c *Cluster) WaitController(ctx context.Context) error {
	deployments := Set{Client: c.Kube.AppsV1().RESTClient(), Resource: "deployments", Namespace: Namespace}
	_, err := WaitOne(ctx, deployments, ControllerName, "the controller to be ready", func(d *appsv1.Deployment) (bool, error) {
		return d != nil && d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == *d.Spec.Replicas &&
			d.Status.AvailableReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas, nil
	})
	if err != nil {
		return err
	}
	webhooks := Set{Client: c.Kube.AdmissionregistrationV1().RESTClient(), Resource: "validatingwebhookconfigurations"}
	_, err = WaitOne(ctx, webhooks, WebhookName, "the webhook's certificate", func(v *admissionregistrationv1.ValidatingWebhookConfiguration) (bool, error) {
		if v == nil {
			return false, nil
		}
		for _, w := range v.Webhooks {
			if len(w.ClientConfig.CABundle) == 0 {
				return false, nil
			}
		}
		return true, nil
	})
	return err
}

// Controllers are the controller's Pods.
func (c *Cluster) Controllers(ctx context.Context) ([]corev1.Pod, error) {
	list, err := c.Kube.CoreV1().Pods(Namespace).List(ctx, metav1.ListOptions{LabelSelector: controllerLabel})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
