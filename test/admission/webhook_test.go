package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

// share of a GPU by MPS.
func share(memory string) resourceapi.ExactDeviceRequest {
	return resourceapi.ExactDeviceRequest{DeviceClassName: "mps.dovetail.dev", Capacity: &resourceapi.CapacityRequirements{
		Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)},
	}}
}

// deviceClass whose parameters have such fields.
func deviceClass(name, driver, fields string) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.DeviceClassSpec{
		Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
			Expression: fmt.Sprintf(`device.driver == %q && device.attributes[%[1]q].type == "mig"`, driver),
		}}},
		Config: []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
			Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(`{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig"` + fields + `}`)},
		}}}},
	}}
}

func (w *world) webhook(t *testing.T) {
	const tenant = "default"
	w.eventually("a claim without memory is refused", func() bool { return w.tryOut(claim(tenant, "a", share("0"))) != nil })

	refused(t, w.tryOut(claim(tenant, "a", share("0"))),
		`admission webhook "claims.dovetail.dev" denied the request: spec.devices.requests[0].exactly.capacity.requests[memory]: 0 is too little: the nearest that works is 1Mi`)
	template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "a"}}
	template.Spec.Spec = claim(tenant, "a", share("0")).Spec
	refused(t, w.tryOut(template), "spec.spec.devices.requests[0].exactly.capacity.requests[memory]: 0")
	refused(t, w.tryOut(deviceClass("a", "dovetail.dev", `,"mode":1`)), "deviceclasses.dovetail.dev", `spec.config[0].opaque.parameters`, `unknown field "mode"`)
	refused(t, w.tryOut(&v1alpha1.PartitionClass{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.PartitionClassSpec{Shape: v1alpha1.Shape{MIG: &v1alpha1.MIGShape{Profile: "9g.10gb"}}},
	}), "partitionclasses.dovetail.dev", "spec.shape.mig.profile: 9g.10gb")

	w.warnings.take()
	refused(t, w.tryOut(claim(tenant, "a", share("500Gi"))))
	if got := w.warnings.take(); len(got) != 1 || !strings.Contains(got[0], "500Gi fits no share by MPS of this cluster; the nearest is H100") {
		t.Errorf("warnings %q", got)
	}

	misspelt := claim(tenant, "a", resourceapi.ExactDeviceRequest{DeviceClassName: "gpu.dovetail.de"})
	refused(t, w.tryOut(misspelt))
	if got := w.warnings.take(); len(got) != 1 || !strings.Contains(got[0], `requests[0].exactly.deviceClassName: there is no DeviceClass "gpu.dovetail.de" now`) {
		t.Errorf("warnings %q", got)
	}
	for _, annotation := range []string{resourceapi.ExtendedResourceClaimAnnotation, resourceapi.PodResourceClaimAnnotation} {
		misspelt.Annotations = map[string]string{annotation: "true"}
		w.unseen(t, "a claim that Kubernetes has made", misspelt)
	}
	w.unseen(t, "a claim of kube-system", claim(metav1.NamespaceSystem, "a", share("0")))
	w.unseen(t, "a claim of the release's namespace", claim(namespace, "a", share("0")))
	w.tenant("careless", map[string]string{"dovetail.dev/admission": "ignore"})
	w.unseen(t, "a claim of a namespace that does without", claim("careless", "a", share("0")))
	w.unseen(t, "another driver's class", deviceClass("a", "gpu.example.com", `,"mode":1`))

	w.bundleIsPutBack(t)
	w.stop()
	start := time.Now()
	refused(t, w.tryOut(claim(tenant, "a", share("0"))))
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("while nobody answers, a claim takes %s", took)
	}
}

// unseen objects are made without a call.
func (w *world) unseen(t *testing.T, what string, o client.Object) {
	t.Helper()
	before := w.calls.Load()
	refused(t, w.tryOut(o))
	if calls := w.calls.Load() - before; calls != 0 {
		t.Errorf("%s: %d calls", what, calls)
	}
}

// What others do to Secret and configuration is put right.
func (w *world) bundleIsPutBack(t *testing.T) {
	t.Helper()
	var c admissionregistration.ValidatingWebhookConfiguration
	w.must(w.Get(t.Context(), client.ObjectKey{Name: webhook}, &c))
	bundle := c.Webhooks[0].ClientConfig.CABundle
	for i := range c.Webhooks {
		c.Webhooks[i].ClientConfig.CABundle = nil
	}
	w.must(w.Update(t.Context(), &c))
	trusted := func() []byte {
		w.must(w.Get(t.Context(), client.ObjectKey{Name: webhook}, &c))
		for _, h := range c.Webhooks {
			if !slices.Equal(h.ClientConfig.CABundle, c.Webhooks[0].ClientConfig.CABundle) {
				return nil
			}
		}
		return c.Webhooks[0].ClientConfig.CABundle
	}
	w.eventually("the bundle is back", func() bool { return slices.Equal(trusted(), bundle) })
	var secret corev1.Secret
	w.must(w.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: webhook}, &secret))
	secret.Data = nil
	w.must(w.Update(t.Context(), &secret))
	w.eventually("another authority", func() bool { now := trusted(); return len(now) > 0 && !slices.Equal(now, bundle) })
	w.eventually("it is trusted", func() bool { return w.tryOut(claim("default", "a", share("0"))) != nil })
}
