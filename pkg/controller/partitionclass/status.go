package partitionclass

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

// write applies the status where it differs from what is there.
func (r *Reconciler) write(ctx context.Context, pc *v1alpha1.PartitionClass, now *report) error {
	r.Metrics.set(pc.Name, &now.status)
	if equality.Semantic.DeepEqual(pc.Status, now.status) {
		return nil
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&now.status)
	if err != nil {
		return fmt.Errorf("status of PartitionClass %s: %w", pc.Name, err)
	}
	applied := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	applied.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.PartitionClassKind))
	applied.SetName(pc.Name)
	applied.SetUID(pc.UID) // not of a later class of the same name
	err = r.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(Manager), client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("status of PartitionClass %s: %w", pc.Name, err)
	}
	return nil
}
