package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

// strict refuses fields that do not exist: a slip of the pen is no test.
var strict = serializer.NewCodecFactory(kinds(), serializer.EnableStrict).UniversalDeserializer()

// kinds are those of Kubernetes, and PartitionClass.
func kinds() *runtime.Scheme {
	all := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(all))
	utilruntime.Must(v1alpha1.AddToScheme(all))
	return all
}

// Objects reads YAML documents.
func Objects(manifest string) ([]runtime.Object, error) {
	var objects []runtime.Object
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if json, err := yaml.ToJSON(document); err == nil && string(json) == "null" {
			continue // comments only
		}
		object, _, err := strict.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, document)
		}
		objects = append(objects, object)
	}
}

// Apply creates what a manifest has, in a namespace.
func (c *Cluster) Apply(ctx context.Context, namespace, manifest string) error {
	objects, err := Objects(manifest)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := c.Create(ctx, namespace, object); err != nil {
			return err
		}
	}
	return nil
}

// Create creates one object.
func (c *Cluster) Create(ctx context.Context, namespace string, object runtime.Object) error {
	var err error
	switch o := object.(type) {
	case *corev1.Pod:
		_, err = c.Kube.CoreV1().Pods(namespace).Create(ctx, o, metav1.CreateOptions{})
	case *resourceapi.ResourceClaim:
		_, err = c.Kube.ResourceV1().ResourceClaims(namespace).Create(ctx, o, metav1.CreateOptions{})
	case *resourceapi.ResourceClaimTemplate:
		_, err = c.Kube.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, o, metav1.CreateOptions{})
	case *appsv1.Deployment:
		_, err = c.Kube.AppsV1().Deployments(namespace).Create(ctx, o, metav1.CreateOptions{})
	case *corev1.ResourceQuota:
		_, err = c.Kube.CoreV1().ResourceQuotas(namespace).Create(ctx, o, metav1.CreateOptions{})
	case *v1alpha1.PartitionClass:
		err = c.CreateClass(ctx, o)
	default:
		err = fmt.Errorf("the harness does not create objects of type %T yet", object)
	}
	return err
}

// CreateNamespace makes a namespace in which Pods can be created.
func (c *Cluster) CreateNamespace(ctx context.Context, name string, labels map[string]string) error {
	_, err := c.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	accounts := Set{Client: c.Kube.CoreV1().RESTClient(), Resource: "serviceaccounts", Namespace: name}
	_, err = WaitOne(ctx, accounts, "default", "the service account of namespace "+name, func(a *corev1.ServiceAccount) (bool, error) { return a != nil, nil })
	return err
}

// EmptyNamespace deletes a namespace's Deployments and Pods and waits until they are gone;
// then the namespace is deleted, without waiting.
func (c *Cluster) EmptyNamespace(ctx context.Context, name string) error {
	return errors.Join(c.deleteDeployments(ctx, name), c.DeletePods(ctx, name), c.Kube.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}))
}

// deleteDeployments deletes those of a namespace, whose Pods would come again, and waits
// until they are gone, and their Pods with them.
func (c *Cluster) deleteDeployments(ctx context.Context, namespace string) error {
	err := c.Kube.AppsV1().Deployments(namespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}, metav1.ListOptions{})
	if err != nil {
		return err
	}
	set := Set{Client: c.Kube.AppsV1().RESTClient(), Resource: "deployments", Namespace: namespace}
	_, err = Wait(ctx, set, "all Deployments of namespace "+namespace+" to go", func(all []*appsv1.Deployment) (bool, error) { return len(all) == 0, nil })
	return err
}

// DeletePods deletes a namespace's Pods and waits until they are gone.
func (c *Cluster) DeletePods(ctx context.Context, name string) error {
	if err := c.Kube.CoreV1().Pods(name).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	_, err := Wait(ctx, c.Pods(name), "all Pods of namespace "+name+" to go", func(pods []*corev1.Pod) (bool, error) { return len(pods) == 0, nil })
	return err
}
