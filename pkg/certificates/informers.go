package certificates

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	admissionregistration "k8s.io/client-go/informers/admissionregistration/v1"
	core "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// Each informer sees one object, which is all that the permissions allow.

func secretInformer(c Config) cache.SharedIndexInformer {
	return core.NewFilteredSecretInformer(c.Kube, c.Namespace, 0, cache.Indexers{}, named(c.Secret))
}

func webhooksInformer(c Config) cache.SharedIndexInformer {
	return admissionregistration.NewFilteredValidatingWebhookConfigurationInformer(c.Kube, 0, cache.Indexers{}, named(c.Webhooks))
}

func named(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
}

// cached returns an object as it was last seen; failure.Absent where there is none.
func cached[T any](informer cache.SharedIndexInformer, key string) (*T, error) {
	object, exists, err := informer.GetStore().GetByKey(key)
	if err != nil {
		return nil, err
	}
	found, ok := object.(*T)
	if !exists || !ok {
		kind := reflect.TypeFor[T]().Name()
		return nil, failure.New(failure.Absent, "%s %s is not there: it comes with the chart, and helm upgrade brings it back", kind, key)
	}
	return found, nil
}
