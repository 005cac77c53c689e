package chart

import (
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// checkTypes decodes every rendered object as the API server would, strictly: a
// field that does not exist, or comes twice, is an error.
func checkTypes(t *testing.T, rendered string) {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensions.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	for document := range strings.SplitSeq("\n"+rendered, "\n---\n") {
		if strings.TrimSpace(document) == "" || strings.Contains(document, "apiVersion: monitoring.coreos.com/") {
			continue
		}
		if _, kind, err := decoder.Decode([]byte(document), nil, nil); err != nil {
			t.Errorf("%v: %v\n%s", kind, err, document)
		}
	}
}
