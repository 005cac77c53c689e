package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/dovetail-dra/dovetail/hack/marked"
)

type schema = apiextensions.JSONSchemaProps

// foreign are fields whose type is Kubernetes' own, described there.
var foreign = map[string]string{"nodeSelector": "label selector", "conditions": "list of conditions"}

// reference is a table of all fields of spec and status, outer ones first.
func reference(object *schema) string {
	var table strings.Builder
	table.WriteString("| Field | Type | Meaning |\n|---|---|---|\n")
	for _, part := range []string{"spec", "status"} {
		s := object.Properties[part]
		fields(&table, part, &s)
	}
	return table.String()
}

func fields(table *strings.Builder, path string, of *schema) {
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		field := of.Properties[name]
		kind, isForeign := foreign[name]
		if !isForeign {
			kind = typeOf(&field)
		}
		if slices.Contains(of.Required, name) {
			kind += ", required"
		}
		at := path + "." + name
		table.WriteString(marked.Row("`"+at+"`", kind, oneLine(strings.Join(append([]string{field.Description}, bounds(&field)...), " "))))
		if !isForeign {
			fields(table, at, &field)
		}
	}
}

func typeOf(s *schema) string {
	switch {
	case s.XIntOrString:
		return "quantity"
	case s.Type == "array":
		return "list of " + typeOf(s.Items.Schema) + "s"
	}
	return s.Type
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// bounds are what the schema says of a field beside its description.
func bounds(s *schema) []string {
	var said []string
	if s.Minimum != nil && s.Maximum != nil {
		said = append(said, fmt.Sprintf("%g to %g.", *s.Minimum, *s.Maximum))
	}
	if s.MaxItems != nil {
		said = append(said, fmt.Sprintf("%d at most.", *s.MaxItems))
	}
	if s.Default != nil {
		said = append(said, fmt.Sprintf("Default: %s.", s.Default.Raw))
	}
	return said
}
