package classwatch

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

// Classes reads the PartitionClasses of the cluster of config.
func Classes(config *rest.Config) (cache.ListerWatcher, error) {
	client, err := Client(config)
	if err != nil {
		return nil, err
	}
	return cache.NewListWatchFromClient(client, Resource, metav1.NamespaceAll, fields.Everything()), nil
}

// Resource is what the API server calls PartitionClasses.
const Resource = "partitionclasses"

// Client reads and writes what the API server stores of this project's group.
func Client(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	of := rest.CopyConfig(config)
	of.GroupVersion, of.APIPath = &v1alpha1.GroupVersion, "/apis"
	of.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	of.AcceptContentTypes, of.ContentType = runtime.ContentTypeJSON, runtime.ContentTypeJSON // all that custom resources have
	return rest.RESTClientFor(of)
}

// Node reads the one Node: it is got and watched by its name, never listed.
func Node(kube kubernetes.Interface, name string) cache.ListerWatcher {
	nodes := kube.CoreV1().Nodes()
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			node, err := nodes.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: node.ResourceVersion}, Items: []corev1.Node{*node}}, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
			return nodes.Watch(ctx, options)
		},
	}, kube)
}
