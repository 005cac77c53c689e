package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// AddToScheme adds the kinds that the API server stores. Those of parameters are only
// ever parts of other objects: see Decode.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &PartitionClass{}, &PartitionClassList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
