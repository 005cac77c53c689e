package admission

import (
	"context"
	"encoding/json"
	"fmt"

	admissionapi "k8s.io/api/admission/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

// object checks what a review is about. An update that leaves the spec as it was is
// never refused: it may be the very one that lets go of an object. An error says that
// the object could not be read.
func (c *Checker) object(ctx context.Context, r *admissionapi.AdmissionRequest) (Findings, error) {
	spec := field.NewPath("spec")
	switch r.Kind.Group + "/" + r.Kind.Kind {
	case resourceapi.GroupName + "/ResourceClaim":
		var claim resourceapi.ResourceClaim
		changed, err := decode(r, &claim, func(o *resourceapi.ResourceClaim) any { return o.Spec })
		if err != nil || !changed {
			return Findings{}, err
		}
		return c.Claim(ctx, &claim.Spec, spec), nil
	case resourceapi.GroupName + "/ResourceClaimTemplate":
		var template resourceapi.ResourceClaimTemplate
		changed, err := decode(r, &template, func(o *resourceapi.ResourceClaimTemplate) any { return o.Spec })
		if err != nil || !changed {
			return Findings{}, err
		}
		return c.Claim(ctx, &template.Spec.Spec, spec.Child("spec")), nil
	case resourceapi.GroupName + "/DeviceClass":
		var class resourceapi.DeviceClass
		changed, err := decode(r, &class, func(o *resourceapi.DeviceClass) any { return o.Spec })
		if err != nil || !changed {
			return Findings{}, err
		}
		return c.Class(&class.Spec, spec), nil
	case v1alpha1.GroupVersion.Group + "/" + v1alpha1.PartitionClassKind:
		var class v1alpha1.PartitionClass
		changed, err := decode(r, &class, func(o *v1alpha1.PartitionClass) any { return o.Spec })
		if err != nil || !changed {
			return Findings{}, err
		}
		return c.PartitionClass(&class), nil
	}
	return Findings{}, nil
}

// decode reads the object of a review, and says whether its spec is new.
func decode[T any](r *admissionapi.AdmissionRequest, object *T, specOf func(*T) any) (changed bool, err error) {
	if len(r.Object.Raw) == 0 { // a deletion
		return false, nil
	}
	if err := json.Unmarshal(r.Object.Raw, object); err != nil {
		return false, fmt.Errorf("decode object: %w", err)
	}
	if len(r.OldObject.Raw) == 0 {
		return true, nil
	}
	var old T
	if err := json.Unmarshal(r.OldObject.Raw, &old); err != nil {
		return false, fmt.Errorf("decode oldObject: %w", err)
	}
	return !equality.Semantic.DeepEqual(specOf(object), specOf(&old)), nil
}
