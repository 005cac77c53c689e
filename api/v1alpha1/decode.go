package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

var decoder = newDecoder()

func newDecoder() runtime.Decoder {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(GroupVersion, &GPUConfig{})
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Strict: true})
}

// Decode reads and validates the opaque parameters of a claim or class. Unknown
// kinds and fields, duplicate fields, and values out of range are errors that
// name field and value and say what would be right.
func Decode(parameters []byte) (*GPUConfig, error) {
	if len(parameters) == 0 {
		return nil, fmt.Errorf("no parameters: want apiVersion %s and kind %s", GroupVersion, GPUConfigKind)
	}
	object, kind, err := decoder.Decode(parameters, nil, nil)
	if runtime.IsNotRegisteredError(err) || runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) {
		found := "none"
		if kind != nil && !kind.Empty() {
			found = fmt.Sprintf("%q in %q", kind.Kind, kind.GroupVersion())
		}
		return nil, fmt.Errorf("kind: %s is not known here: want %s in %s", found, GPUConfigKind, GroupVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: correct or remove the field; `kubectl explain` does not know opaque parameters, docs/configuration.md does", err)
	}
	config, ok := object.(*GPUConfig)
	if !ok {
		return nil, fmt.Errorf("kind: %T is not known here: want %s in %s", object, GPUConfigKind, GroupVersion)
	}
	if err := config.Validate().ToAggregate(); err != nil {
		return nil, err
	}
	return config, nil
}
