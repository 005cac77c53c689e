package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
)

var decoder = newDecoder()

// kinds in words.
const kinds = GPUConfigKind + ", " + NICConfigKind + " or " + PairConfigKind

func newDecoder() runtime.Decoder {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(GroupVersion, &GPUConfig{}, &NICConfig{}, &PairConfig{})
	return serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme, serializer.SerializerOptions{Strict: true})
}

// Decode reads and validates the opaque parameters of a claim or class. Unknown
// kinds and fields, duplicate fields, and values out of range are errors that
// name field and value and say what would be right.
func Decode(parameters []byte) (Config, error) {
	if len(parameters) == 0 {
		return nil, fmt.Errorf("no parameters: want apiVersion %s and kind %s", GroupVersion, kinds)
	}
	object, err := decodeStrictly(decoder, parameters, kinds, "docs/configuration.md")
	if err != nil {
		return nil, err
	}
	config, ok := object.(Config)
	if !ok {
		return nil, fmt.Errorf("kind: %T is not known here: want %s in %s", object, kinds, GroupVersion)
	}
	if err := config.Validate().ToAggregate(); err != nil {
		return nil, err
	}
	return config, nil
}

// decodeStrictly reads one object of those kinds, which are documented in a file.
func decodeStrictly(decoder runtime.Decoder, content []byte, kinds, file string) (runtime.Object, error) {
	object, kind, err := decoder.Decode(content, nil, nil)
	if runtime.IsNotRegisteredError(err) || runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) {
		found := "none"
		if kind != nil && !kind.Empty() {
			found = fmt.Sprintf("%q in %q", kind.Kind, kind.GroupVersion())
		}
		return nil, fmt.Errorf("kind: %s is not known here: want %s in %s", found, kinds, GroupVersion)
	}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return nil, fmt.Errorf("%s: a %s is not what belongs here: want %s: see %s", fieldOf(mismatch), mismatch.Value, wanted(mismatch.Type), file)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: correct or remove the field: see %s", err, file)
	}
	return object, nil
}

// fieldOf names where a value of the wrong type stands. The decoder has the names of
// embedded structs in it, which nobody writes: fields begin with a small letter.
func fieldOf(e *json.UnmarshalTypeError) string {
	names := slices.DeleteFunc(strings.Split(e.Field, "."), func(name string) bool {
		return name == "" || unicode.IsUpper(rune(name[0]))
	})
	if len(names) == 0 {
		return "the parameters"
	}
	return strings.Join(names, ".")
}

// wanted says what a field of that type takes.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Int32:
		return "a whole number, of 32 bits at most"
	case reflect.Slice:
		return "a list"
	default:
		return "fields"
	}
}
