package main

import (
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

func TestReference(t *testing.T) {
	got := reference(&schema{Properties: map[string]schema{
		"metadata": {Type: "object"},
		"spec": {
			Required: []string{"shape"},
			Properties: map[string]schema{
				"shape":     {Type: "object", Description: "One of\na | b.", Properties: map[string]schema{"memory": {XIntOrString: true, Description: "Bytes."}}},
				"names":     {Type: "array", Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &schema{Type: "string"}}, MaxItems: ptr.To[int64](3)},
				"published": {Type: "boolean", Default: &apiextensions.JSON{Raw: []byte("true")}},
			},
		},
		"status": {Properties: map[string]schema{
			"conditions": {Type: "array", Description: "Known.", Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &schema{Type: "object"}}},
			"free":       {Type: "integer", Minimum: ptr.To(1.0), Maximum: ptr.To(100.0), Description: "Left."},
		}},
	}})
	want := "| Field | Type | Meaning |\n|---|---|---|\n" +
		"| `spec.names` | list of strings | 3 at most. |\n" +
		"| `spec.published` | boolean | Default: true. |\n" +
		"| `spec.shape` | object, required | One of a \\| b. |\n" +
		"| `spec.shape.memory` | quantity | Bytes. |\n" +
		"| `status.conditions` | list of conditions | Known. |\n" +
		"| `status.free` | integer | Left. 1 to 100. |\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
