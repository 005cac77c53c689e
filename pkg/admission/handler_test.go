package admission

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	admissionapi "k8s.io/api/admission/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

func object(t *testing.T, text string) runtime.RawExtension {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: raw}
}

// post sends a review and returns the answer.
func post(t *testing.T, h http.Handler, r *admissionapi.AdmissionRequest) *admissionapi.AdmissionResponse {
	t.Helper()
	body, err := json.Marshal(admissionapi.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: r,
	})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/validate", bytes.NewReader(body)))
	var answer admissionapi.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
		t.Fatalf("code %d, %v: %s", w.Code, err, w.Body)
	}
	if answer.APIVersion != "admission.k8s.io/v1" || answer.Kind != "AdmissionReview" || answer.Response == nil || answer.Response.UID != r.UID {
		t.Fatalf("answer %s", w.Body)
	}
	return answer.Response
}

const parametersOf = `, parameters: {apiVersion: dovetail.dev/v1alpha1, kind: GPUConfig, `

func TestReviews(t *testing.T) {
	const (
		mig   = `selectors: [{cel: {expression: 'device.driver == "dovetail.dev" && device.attributes["dovetail.dev"].type == "mig"'}}]`
		other = `selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]`
	)
	class := func(selectors, fields string) string {
		return `{spec: {` + selectors + `, config: [{opaque: {driver: dovetail.dev` + parametersOf + fields + `}}}]}}`
	}
	claim := `{spec: {devices: ` + one(`{deviceClassName: mps.dovetail.dev, capacity: {requests: {memory: 0}}}`) + `}}`
	big := `{spec: {devices: ` + one(`{deviceClassName: mps.dovetail.dev, capacity: {requests: {memory: 1Ti}}}`) + `}}`
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := NewMetrics(registry); err != nil || again.reviews != metrics.reviews {
		t.Errorf("for another manager of the process: %v, %v", again, err)
	}
	h := &Handler{Checker: checker(t, "t4"), Metrics: metrics}
	for name, test := range map[string]struct {
		kind, object, old string
		refused, warned   []string
	}{
		"a claim":                     {"ResourceClaim", claim, "", []string{"spec.devices.requests[0].exactly.capacity.requests[memory]: 0"}, nil},
		"a claim as it was":           {"ResourceClaim", claim, claim, nil, nil},
		"a claim that is too big":     {"ResourceClaim", big, "", nil, []string{"1Ti fits no share by MPS"}},
		"a template":                  {"ResourceClaimTemplate", `{spec: ` + claim + `}`, "", []string{"spec.spec.devices.requests[0]"}, nil},
		"a class":                     {"DeviceClass", class(mig, ""), "", nil, nil},
		"a class of another driver":   {"DeviceClass", class(other, ""), "", nil, []string{"spec.config", "another driver"}},
		"what does not decode":        {"DeviceClass", class(mig, "mode: 1"), "", []string{"spec.config[0].opaque.parameters", `unknown field "mode"`}, nil},
		"as bad as it was":            {"DeviceClass", class(mig, "mode: 1"), class(mig, "mode: 1"), nil, nil},
		"worse than it was":           {"DeviceClass", class(mig, "mode: 1"), class(mig, ""), []string{`unknown field "mode"`}, nil},
		"what the kind does not take": {"DeviceClass", class(mig, "computeMode: Default"), "", []string{"spec.config: for devices of type mig: computeMode"}, nil},
		"good alone, not together": {"DeviceClass", `{spec: {config: [{opaque: {driver: dovetail.dev` + parametersOf + `computeMode: Default}}}, {opaque: {driver: dovetail.dev` + parametersOf + `sharing: {strategy: MPS}}}}]}}`,
			"", []string{"spec.config[1].opaque.parameters: with what stands before it: computeMode"}, nil},
		"of another kind": {"DeviceClass", strings.ReplaceAll(class(mig, "mtu: 9000"), "GPUConfig", "NICConfig"), "",
			[]string{"spec.config[0].opaque.parameters: kind: NICConfig, but", "GPUConfig"}, nil},
		"a partition class":              {"PartitionClass", `{metadata: {name: x}, spec: {shape: {mig: {profile: 9g.10gb}}}}`, "", []string{"spec.shape.mig.profile"}, nil},
		"what is nobody's business here": {"Gadget", `{spec: 1}`, "", nil, nil},
		"what is no claim":               {"ResourceClaim", `{spec: 1}`, "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &admissionapi.AdmissionRequest{
				UID: "1", Kind: metav1.GroupVersionKind{Group: resourceapi.GroupName, Version: "v1", Kind: test.kind}, Object: object(t, test.object),
			}
			if test.kind == "PartitionClass" {
				r.Kind.Group, r.Kind.Version = v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version
			}
			if test.old != "" {
				r.OldObject = object(t, test.old)
			}
			answer := post(t, h, r)
			if answer.Allowed != (test.refused == nil) {
				t.Fatalf("%+v", answer)
			}
			check(t, "warnings", answer.Warnings, test.warned)
			if !answer.Allowed {
				check(t, "refused", []string{answer.Result.Message}, test.refused)
				if answer.Result.Code != http.StatusUnprocessableEntity || answer.Result.Reason != metav1.StatusReasonInvalid {
					t.Errorf("code %d, reason %s", answer.Result.Code, answer.Result.Reason)
				}
			}
		})
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range families[0].GetMetric() {
		labels := m.GetLabel()
		seen[labels[0].GetValue()+" "+labels[1].GetValue()] = true
	}
	for _, want := range []string{"ResourceClaim refused", "ResourceClaim warned", "ResourceClaim error", "DeviceClass allowed", "other allowed"} {
		if !seen[want] {
			t.Errorf("no metric says %q: %v", want, seen)
		}
	}
}

func TestDeletionPasses(t *testing.T) {
	h := &Handler{Checker: checker(t, "t4")}
	answer := post(t, h, &admissionapi.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind{Group: resourceapi.GroupName, Version: "v1", Kind: "DeviceClass"}, OldObject: object(t, `{spec: {}}`),
	})
	if !answer.Allowed {
		t.Errorf("%+v", answer)
	}
}

func TestNoReview(t *testing.T) {
	h := &Handler{Checker: checker(t, "t4")}
	for _, body := range []string{"", "{}", "no JSON", `{"request":null}`} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/validate", strings.NewReader(body)))
		if w.Code != http.StatusBadRequest {
			t.Errorf("%q: code %d", body, w.Code)
		}
	}
}

// The stores follow what informers tell them.
func TestClassesFollow(t *testing.T) {
	c := checker(t, "t4")
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: resourceapi.DeviceClassSpec{
		Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: `device.attributes["dovetail.dev"].type == "mps"`}}},
	}}
	for _, step := range []struct {
		do   func()
		want bool
	}{
		{func() { c.Classes.OnAdd(class, true) }, true},
		{func() {
			broken := class.DeepCopy()
			broken.Spec.Selectors[0].CEL.Expression = "device."
			c.Classes.OnUpdate(class, broken)
		}, true},
		{func() { c.Classes.OnDelete(class) }, false},
	} {
		step.do()
		if got := c.Classes.get("new"); (got != nil) != step.want {
			t.Errorf("class %+v", got)
		}
	}
	if known := newClass(&resourceapi.DeviceClass{Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{}}}}); known.broken == nil {
		t.Error("a selector without CEL is no fault")
	}
}
