package v1alpha1

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	partitionClassName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	migProfile         = regexp.MustCompile(`^[1-9][0-9]*g\.[1-9][0-9]*gb([+-][a-z.]+)?$`)
	extendedResource   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
)

// Validate says what is wrong with the class: field, value, and what would be right.
// The schema of the CustomResourceDefinition says most of it as well; what it cannot
// say is here alone.
func (c *PartitionClass) Validate() field.ErrorList {
	var errs field.ErrorList
	name := field.NewPath("metadata", "name")
	if len(c.Name) > MaxPartitionClassName {
		errs = append(errs, field.Invalid(name, c.Name, fmt.Sprintf("is too long: want %d characters at most, since it ends the names of devices", MaxPartitionClassName)))
	}
	if !partitionClassName.MatchString(c.Name) {
		errs = append(errs, field.Invalid(name, c.Name, "want a letter, then letters, digits and dashes, no dash last, all lower-case"))
	}
	spec := field.NewPath("spec")
	errs = append(errs, c.Spec.Shape.validate(spec.Child("shape"))...)
	errs = append(errs, c.Spec.Hardware.validate(spec.Child("hardware"), &c.Spec.Shape)...)
	return append(errs, validateExtendedResource(spec.Child("extendedResourceName"), c.Spec.ExtendedResourceName)...)
}

// maxResourceDomain is how long the domain of an extended resource can be, in characters:
// requests. and the domain are a DNS name.
const maxResourceDomain = validation.DNS1123SubdomainMaxLength - len(corev1.DefaultResourceRequestsPrefix)

func validateExtendedResource(path *field.Path, name string) field.ErrorList {
	switch {
	case name == "":
		return nil
	case !extendedResource.MatchString(name) || len(name) > 253:
		return field.ErrorList{field.Invalid(path, name, "want a domain, a slash and a name of at most 63 characters, as example.com/gpu-small")}
	case strings.Contains(name, "kubernetes.io/") || strings.HasPrefix(name, "requests."): // notkubernetes.io, too, says the API server
		return field.ErrorList{field.Invalid(path, name, "domains that end in kubernetes.io and the prefix requests. are Kubernetes' own: use a domain of yours")}
	case strings.Index(name, "/") > maxResourceDomain:
		return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("is too long: want %d characters at most before the slash, to which quotas add a prefix", maxResourceDomain))}
	}
	return nil
}

func (s *Selection) validate(path *field.Path, shape *Shape) field.ErrorList {
	errs := atLeast(path.Child("minMemory"), s.MinMemory, "1", "more than 0, as 70Gi")
	errs = append(errs, texts(path.Child("products"), s.Products)...)
	errs = append(errs, texts(path.Child("architectures"), s.Architectures)...)
	if shape.ofNIC() && s.MinMemory != nil {
		errs = append(errs, field.Forbidden(path.Child("minMemory"), "NICs have no memory to select on: remove it"))
	}
	if shape.ofNIC() && len(s.Architectures) > 0 {
		errs = append(errs, field.Forbidden(path.Child("architectures"), "NICs have no architecture to select on: remove it"))
	}
	if s.NodeSelector != nil {
		errs = append(errs, metavalidation.ValidateLabelSelector(s.NodeSelector, metavalidation.LabelSelectorValidationOptions{}, path.Child("nodeSelector"))...)
	}
	return errs
}

// texts are what attributes of devices can be: not empty, 64 characters at most.
func texts(path *field.Path, values []string) field.ErrorList {
	var errs field.ErrorList
	for i, value := range values {
		if value == "" || len(value) > 64 {
			errs = append(errs, field.Invalid(path.Index(i), value, "want 1 to 64 characters, as attributes of devices have"))
		}
	}
	return errs
}

// atLeast wants a whole number of bytes, or nothing.
func atLeast(path *field.Path, value *resource.Quantity, least, want string) field.ErrorList {
	if value == nil {
		return nil
	}
	if value.Cmp(resource.MustParse(least)) < 0 || value.CmpInt64(value.Value()) != 0 {
		return field.ErrorList{field.Invalid(path, value.String(), "want "+want)}
	}
	return nil
}
