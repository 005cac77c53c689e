package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// warnings gathers those that the API server sends.
type warnings struct {
	mu  sync.Mutex
	all []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

// tryOut has the API server take an object, of which nothing comes, as kubectl sends
// it, and returns what it warns of.
func (e *env) tryOut(manifest string) ([]string, error) {
	e.Helper()
	object := &unstructured.Unstructured{}
	e.must(yaml.Unmarshal([]byte(manifest), &object.Object))
	var w warnings
	config := rest.CopyConfig(e.Config)
	config.WarningHandler = &w
	client, err := dynamic.NewForConfig(config)
	e.must(err)
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	var of dynamic.ResourceInterface = client.Resource(resource)
	if !slices.Contains([]string{"PartitionClass", "DeviceClass"}, object.GetKind()) {
		of = client.Resource(resource).Namespace(e.namespace)
	}
	_, err = of.Create(e.ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return w.all, err
}

// refusedSoon waits until the API server refuses an object, in such words: it learns of
// webhooks and their endpoints a moment after they are there.
func (e *env) refusedSoon(manifest string, words ...string) {
	e.Helper()
	e.eventually(fmt.Sprintf("a refusal with %q", words), func() bool {
		_, err := e.tryOut(manifest)
		return err != nil && contains(err.Error(), words)
	})
}

// eventually waits for what no watch tells.
func (e *env) eventually(what string, ok func() bool) {
	e.Helper()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-e.ctx.Done():
			e.Fatalf("never: %s", what)
		}
	}
}

// contains says whether all of the words are in a text.
func contains(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// classOf is a PartitionClass with such a spec.
func classOf(name, spec string) string {
	return fmt.Sprintf("{apiVersion: dovetail.dev/v1alpha1, kind: PartitionClass, metadata: {name: %s}, spec: %s}", name, spec)
}

// deviceClassOf is a DeviceClass with such parameters for Dovetail.
func deviceClassOf(parameters string) string {
	return fmt.Sprintf(`{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: bad}, spec: {
		selectors: [{cel: {expression: 'device.driver == "dovetail.dev"'}}], config: [{opaque: {driver: dovetail.dev, parameters: %s}}]}}`, parameters)
}

// refusals: what is wrong is refused when it is written, by the schema or the webhook, with
// the field, its value, and what would be right.
var refusals = []struct {
	name, manifest string
	words          []string
}{
	{"no memory", template("bad", share("0", 5)),
		[]string{"spec.spec.devices.requests[0].exactly.capacity.requests[memory]: 0", "nearest that works is 1Mi"}},
	{"no memory, in a claim", claimOf(template("bad", share("0", 5))),
		[]string{"spec.devices.requests[0].exactly.capacity.requests[memory]: 0", "nearest that works is 1Mi"}},
	{"more than all of a GPU", template("bad", share("1Gi", 101)), []string{"requests[compute]: 101", "nearest that works is 100"}},
	{"unknown capacity", template("bad", "{deviceClassName: mps.dovetail.dev, capacity: {requests: {memry: 1Gi}}}"), []string{"requests[memry]", "want clients, compute, memory"}},
	{"unknown interval", configuredShare("bad", timeSlice("1Gi"), "sharing: {timeSlicing: {interval: Tiny}}"),
		[]string{"spec.spec.devices.config[0].opaque.parameters", "sharing.timeSlicing.interval", `"Tiny"`, `"Short"`}},
	{"unknown field", configuredShare("bad", share("1Gi", 5), "shering: {strategy: MPS}"), []string{"spec.spec.devices.config[0].opaque.parameters", `unknown field "shering"`}},
	{"percentage", configuredShare("bad", gpuRequest, "sharing: {strategy: MPS, mps: {activeThreadPercentage: 101}}"),
		[]string{"sharing.mps.activeThreadPercentage", "101", "nearest is 100"}},
	{"another way to share", configuredShare("bad", timeSlice("1Gi"), "sharing: {strategy: MPS}"), []string{"sharing.strategy", "claim a device of the other kind"}},
	{"wrong kind", configured("bad", "", "{apiVersion: dovetail.dev/v1alpha1, kind: GPUConfiguration}"), []string{"spec.spec.devices.config[0].opaque.parameters", "GPUConfiguration", "GPUConfig"}},
	{"wrong version", configured("bad", "", "{apiVersion: dovetail.dev/v9, kind: GPUConfig}"), []string{"dovetail.dev/v9", "dovetail.dev/v1alpha1"}},
	{"a NIC's parameters for a GPU", configured("bad", "", "{apiVersion: dovetail.dev/v1alpha1, kind: NICConfig, mtu: 9000}"), []string{"NICConfig", "GPUConfig"}},
	{"locked by the class", configuredShare("bad", "{deviceClassName: strict}", "enforcement: None"), []string{"enforcement", "the DeviceClass has locked it"}},
	{"DeviceClass with an unknown field", deviceClassOf("{apiVersion: dovetail.dev/v1alpha1, kind: GPUConfig, mode: 1}"), []string{"spec.config[0].opaque.parameters", `unknown field "mode"`}},
	{"two shapes", classOf("bad", "{shape: {gpu: {}, nic: {}}}"), []string{"spec.shape", "for two shapes make two classes"}},
	{"no shape", classOf("bad", "{shape: {}}"), []string{"spec.shape", "want exactly one of mig, mps"}},
	{"unknown shape", classOf("bad", "{shape: {vgpu: {}}}"), []string{`unknown field "spec.shape.vgpu"`}},
	{"profile that no GPU model has", classOf("bad", "{shape: {mig: {profile: 9g.10gb}}}"), []string{"spec.shape.mig.profile: 9g.10gb", "no GPU has partitions of 9 compute slices", "inventory --profiles"}},
	{"profile that is none", classOf("bad", "{shape: {mig: {profile: small}}}"), []string{"spec.shape.mig.profile", "small", "1g.10gb"}},
	{"profile and memory", classOf("bad", "{shape: {mig: {profile: 1g.10gb, memory: 10G}}}"), []string{"spec.shape.mig", "want either profile or memory"}},
	{"class without memory", classOf("bad", "{shape: {mps: {memory: 0}}}"), []string{"spec.shape.mps.memory", "want 1Mi at least"}},
	{"memory beyond all", classOf("bad", "{shape: {mps: {memory: 80Ti}}}"), []string{"spec.shape.mps.memory: 80Ti", "want 4Ti at most"}},
	{"class with too much compute", classOf("bad", "{shape: {mps: {memory: 1Gi, compute: 101}}}"), []string{"spec.shape.mps.compute", "101", "less than or equal to 100"}},
	{"class with an unknown interval", classOf("bad", "{shape: {timeSlice: {interval: Tiny}}}"), []string{"spec.shape.timeSlice.interval", `"Tiny"`, `"Short"`}},
	{"name that is no DNS label", classOf("not.a.label", "{shape: {gpu: {}}}"), []string{"metadata.name", "want a letter, then letters, digits and dashes"}},
	{"name that is too long", classOf(strings.Repeat("a", 41), "{shape: {gpu: {}}}"), []string{"metadata.name", "40 characters at most"}},
	{"Kubernetes' resource", classOf("bad", "{shape: {gpu: {}}, extendedResourceName: gpu.kubernetes.io/small}"), []string{"spec.extendedResourceName", "gpu.kubernetes.io/small", "use a domain of yours"}},
	{"resource without a domain", classOf("bad", "{shape: {gpu: {}}, extendedResourceName: small}"), []string{"spec.extendedResourceName", "small", "as example.com/gpu-small"}},
}

// TestRefused: what is wrong is refused before anything comes of it.
func TestRefused(t *testing.T) {
	e := withClasses(t)
	e.class("strict", "{shape: {mps: {memory: 10Gi, enforcement: Strict}}}")
	e.refusedSoon(refusals[0].manifest, refusals[0].words...)
	e.refusedSoon(configuredShare("bad", "{deviceClassName: strict}", "enforcement: None"), "locked")
	for _, test := range refusals {
		if _, err := e.tryOut(test.manifest); err == nil || !contains(err.Error(), test.words) {
			t.Errorf("%s: error %v, want one with %q", test.name, err, test.words)
		}
	}
	if _, err := e.tryOut(template("good", share("10Gi", 25))); err != nil {
		t.Errorf("what is right: %v", err)
	}
	err := e.PatchClass(e.ctx, "strict", `{"spec":{"shape":{"mps":null,"gpu":{}}}}`)
	if err == nil || !contains(err.Error(), []string{"spec.shape", "cannot be changed", "make another class"}) {
		t.Errorf("another shape: error %v", err)
	}
}

// TestWarned: what can never be had is taken, for a cluster can grow, with a warning that
// names what is nearest.
func TestWarned(t *testing.T) {
	e := start(t, nil)
	e.refusedSoon(refusals[0].manifest, refusals[0].words...)
	for _, test := range []struct {
		name, manifest string
		words          []string
	}{
		{"more memory than any GPU has", template("much", share("200Gi", 5)), []string{"requests[memory]: 200Gi fits no share by MPS of this cluster; the nearest is H100"}},
		{"larger than any partition", partition("large", `device.capacity["dovetail.dev"].memory.compareTo(quantity("100Gi")) >= 0`),
			[]string{"100Gi fits no partition of this cluster; the nearest is 7g.80gb", "on H100"}},
		{"class that is not there", template("misspelt", "{deviceClassName: gpu.dovetail.de}"), []string{`requests[0].exactly.deviceClassName: there is no DeviceClass "gpu.dovetail.de" now`}},
		{"profile that is not there", partition("odd", profile("2g.35gb", "")), []string{"no GPU of this cluster offers profile 2g.35gb now; the nearest is 2g.20gb"}},
		{"class with more than any GPU has", classOf("large", "{shape: {mps: {memory: 200Gi}}}"), []string{"spec.shape.mps.memory: 200Gi fits no GPU of this cluster; the nearest is H100"}},
		{"extended resource that is taken", classOf("again", "{shape: {gpu: {}}, extendedResourceName: "+smallShare+"}"), []string{"spec.extendedResourceName", smallShare, "use another name"}},
		{"DeviceClass that is somebody else's", classOf("small", "{shape: {gpu: {}}}"), []string{"metadata.name", "DeviceClass small", "use another name"}},
	} {
		got, err := e.tryOut(test.manifest)
		if err != nil || len(got) != 1 || !contains(got[0], test.words) {
			t.Errorf("%s: error %v and warnings %q, want one with %q", test.name, err, got, test.words)
		}
	}
	if got, err := e.tryOut(template("good", share("10Gi", 25))); err != nil || len(got) != 0 {
		t.Errorf("what is right: error %v, warnings %q", err, got)
	}
}
