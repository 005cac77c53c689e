package class_test

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/class"
)

// What a class fixes is locked; what it leaves open is left to claims.
func TestConfiguration(t *testing.T) {
	for name, want := range map[string]string{
		"share":     `{"kind":"GPUConfig","apiVersion":"dovetail.dev/v1alpha1","enforcement":"Strict","locked":["enforcement"]}`,
		"any-turn":  `{"kind":"GPUConfig","apiVersion":"dovetail.dev/v1alpha1","sharing":{"timeSlicing":{"interval":"Short"}},"locked":["sharing"]}`,
		"nic":       `{"kind":"NICConfig","apiVersion":"dovetail.dev/v1alpha1","requireLossless":true,"locked":["requireLossless"]}`,
		"pair":      `{"kind":"PairConfig","apiVersion":"dovetail.dev/v1alpha1","gpu":{},"nic":{"requireLossless":true},"locked":["nic.requireLossless"]}`,
		"any-share": "", "turn": "", "whole": "", "profile": "", "memory": "", "rdma": "", "vf": "",
	} {
		spec := compiled(t, name, specs[name]).DeviceClass()
		if want == "" {
			if spec.Config != nil {
				t.Errorf("%s: %+v", name, spec.Config)
			}
			continue
		}
		opaque := spec.Config[0].Opaque
		if len(spec.Config) != 1 || opaque.Driver != "dovetail.dev" {
			t.Fatalf("%s: %+v", name, spec.Config)
		}
		decoded, err := v1alpha1.Decode(opaque.Parameters.Raw)
		if err != nil {
			t.Fatalf("%s: what prepare says of it: %v", name, err)
		}
		want, err := v1alpha1.Decode([]byte(want))
		if err != nil || !reflect.DeepEqual(decoded, want) {
			t.Errorf("%s: %s, %v", name, opaque.Parameters.Raw, err)
		}
	}
}

func TestExtendedResource(t *testing.T) {
	if name := compiled(t, "small", `{shape: {gpu: {}}, extendedResourceName: example.com/gpu}`).DeviceClass().ExtendedResourceName; ptr.Deref(name, "") != "example.com/gpu" {
		t.Errorf("got %q", ptr.Deref(name, ""))
	}
	if name := compiled(t, "small", `{shape: {gpu: {}}}`).DeviceClass().ExtendedResourceName; name != nil {
		t.Errorf("got %q", *name)
	}
}

func TestIsRetired(t *testing.T) {
	for name, body := range specs {
		spec := compiled(t, name, body).DeviceClass()
		if want := strings.Contains(body, "published: false"); class.IsRetired(&spec) != want {
			t.Errorf("%s: want %t", name, want)
		}
	}
}

// The same class gives the same bytes, so that nothing is written anew.
func TestDeterministic(t *testing.T) {
	for name, spec := range specs {
		if a, b := compiled(t, name, spec).DeviceClass(), compiled(t, name, spec).DeviceClass(); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %+v and %+v", name, a, b)
		}
		if expression := compiled(t, name, spec).DeviceClass().Selectors[0].CEL.Expression; !strings.HasPrefix(name, "retired") && !strings.HasPrefix(expression, `device.driver == "dovetail.dev" && device.attributes["dovetail.dev"].type == "`) {
			t.Errorf("%s does not test the type first: %s", name, expression)
		}
	}
}
