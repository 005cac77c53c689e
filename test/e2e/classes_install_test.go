package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// definition of PartitionClass, in the chart and in the cluster.
const (
	definitionFile = "files/dovetail.dev_partitionclasses.yaml"
	definition     = "partitionclasses.dovetail.dev"
)

// TestChartUpgraded: an earlier chart's definition of PartitionClass lacks a field. `helm
// upgrade` brings it, and other agents and controllers, while a class is used.
func TestChartUpgraded(t *testing.T) {
	e := withClasses(t)
	e.afterwards(func() { e.install() })
	older := t.TempDir()
	e.must(os.CopyFS(older, os.DirFS(filepath.Join(e.Root, harness.Chart))))
	withoutField(t, filepath.Join(older, definitionFile), "published")
	mark := map[string]string{"e2e/version": "earlier"}
	earlier := maps.Clone(values)
	earlier["podAnnotations"], earlier["controller"] = mark, harness.Values{"replicas": replicas, "podAnnotations": mark}
	e.must(e.InstallFrom(e.ctx, older, earlier))
	e.installed()

	e.class("shared", "{shape: {mps: {memory: 10Gi}}, hardware: {products: ['NVIDIA L4']}, extendedResourceName: example.com/gpu-shared}")
	e.pod("before", limits("example.com/gpu-shared", 1), fills("9G", "2G"))
	e.limited("before")
	check := e.undisturbed("before")
	if e.retire("shared") {
		t.Fatal("the earlier definition has the field already")
	}

	e.install()
	// The API server takes a moment to work by the new definition.
	e.eventually("the class keeps the field", func() bool { return e.retire("shared") })
	e.untilClass("shared", "be retired", func(c *v1alpha1.PartitionClass) bool {
		return has(c, v1alpha1.ConditionMatched, metav1.ConditionFalse, "NotPublished") && c.Status.Allocated == 1
	})
	check()
}

// withoutField takes a field of the spec out of a definition.
func withoutField(t *testing.T, file, field string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := yaml.Unmarshal(content, &object); err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	fields, found, err := unstructured.NestedFieldNoCopy(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties")
	if !found || err != nil || fields.(map[string]any)[field] == nil {
		t.Fatalf("%s has no field %s: %v", file, field, err)
	}
	delete(fields.(map[string]any), field)
	if err := unstructured.SetNestedSlice(object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	if content, err = yaml.Marshal(object); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// retire sets published to false, and says whether the API server keeps it.
func (e *env) retire(name string) bool {
	e.Helper()
	e.must(e.PatchClass(e.ctx, name, `{"spec":{"published":false}}`))
	class := e.untilClass(name, "be there", func(*v1alpha1.PartitionClass) bool { return true })
	return class.Spec.Published != nil && !*class.Spec.Published
}

// install installs Dovetail as the tests want it, and waits until all of it runs.
func (e *env) install() {
	e.Helper()
	e.must(e.Install(e.ctx, values))
	e.installed()
}

// installed waits until all that Helm was told to install, or to replace, runs.
func (e *env) installed() {
	e.Helper()
	e.rolledOut()
	for node, machine := range machines {
		_, err := e.WaitAgent(e.ctx, node)
		e.must(err)
		_, err = e.WaitGPUs(e.ctx, node, machine.gpus)
		e.must(err)
	}
	e.must(e.WaitController(e.ctx))
}

// TestUninstalled: in the order that the chart's page has, nothing is left, in the cluster
// or on a node.
func TestUninstalled(t *testing.T) {
	e := alone(t)
	e.afterwards(func() { e.install() })
	e.class("parts", "{shape: {mig: {profile: 1g.10gb}}, extendedResourceName: example.com/gpu-parts}")
	e.class("shared", "{shape: {mps: {memory: 10Gi}}, extendedResourceName: example.com/gpu-shared}")
	e.pod("part", limits("example.com/gpu-parts", 1))
	e.verify("part")
	e.pod("share", limits("example.com/gpu-shared", 1), fills("9G", "2G"))
	e.limited("share")

	e.must(e.DeletePods(e.ctx, e.namespace))
	e.must(e.DeleteClasses(e.ctx))
	e.must(e.Uninstall(e.ctx))
	definitions := e.dynamic().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	e.must(definitions.Delete(e.ctx, definition, metav1.DeleteOptions{}))
	e.must(e.Kube.CoreV1().Namespaces().Delete(e.ctx, harness.Namespace, metav1.DeleteOptions{}))

	namespaces := harness.Set{Client: e.Kube.CoreV1().RESTClient(), Resource: "namespaces"}
	_, err := harness.WaitOne(e.ctx, namespaces, harness.Namespace, "Dovetail's namespace to go", func(n *corev1.Namespace) (bool, error) { return n == nil, nil })
	e.must(err)
	for node := range machines {
		_, err := harness.Wait(e.ctx, e.Slices(node), node+" to publish nothing", func(s []*resourceapi.ResourceSlice) (bool, error) { return len(s) == 0, nil })
		e.must(err)
		e.nothingOn(node)
	}
	if left := e.leftInCluster(); len(left) > 0 {
		t.Errorf("left in the cluster: %q", left)
	}
}

// remains are what the chart's page says that stays on a node: programs that containers
// need until they have ended, and what the agent knew of classes.
var remains = []string{harness.PluginDir + "/dovetail-hook", harness.PluginDir + "/nvidia-cdi-hook", harness.PluginDir + "/classes.json"}

// nothingOn: a node has no file of Dovetail's but what remains and empty locks, and no
// process of MPS.
func (e *env) nothingOn(node string) {
	e.Helper()
	s, err := e.Snapshot(e.ctx, node)
	e.must(err)
	if len(s.Processes) > 0 {
		e.Errorf("left on %s: %+v", node, s.Processes)
	}
	for name, content := range s.Files {
		if len(content) > 0 && !slices.Contains(remains, name) || strings.HasPrefix(name, harness.CDIDir+"/") {
			e.Errorf("left on %s: %s (%d bytes)", node, name, len(content))
		}
	}
}

func (e *env) dynamic() dynamic.Interface {
	e.Helper()
	client, err := dynamic.NewForConfig(e.Config)
	e.must(err)
	return client
}

// leftInCluster names the objects outside of namespaces that are Dovetail's.
func (e *env) leftInCluster() []string {
	e.Helper()
	lists, err := e.Kube.Discovery().ServerPreferredResources()
	e.must(err)
	client := e.dynamic()
	var left []string
	for _, list := range lists {
		of, err := schema.ParseGroupVersion(list.GroupVersion)
		e.must(err)
		for _, r := range list.APIResources {
			if r.Namespaced || !slices.Contains(r.Verbs, "list") {
				continue
			}
			left = append(left, e.named(client.Resource(of.WithResource(r.Name)), r.Name)...)
		}
	}
	return left
}

// named lists a resource's objects that have Dovetail in their names or labels.
func (e *env) named(client dynamic.ResourceInterface, resource string) []string {
	e.Helper()
	list, err := client.List(e.ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil // it goes just now
	}
	e.must(err)
	var found []string
	for _, o := range list.Items {
		labels := o.GetLabels()
		if strings.Contains(o.GetName(), "dovetail") || strings.Contains(labels["app.kubernetes.io/instance"]+labels["app.kubernetes.io/managed-by"], harness.Release) {
			found = append(found, resource+"/"+o.GetName())
		}
	}
	return found
}
