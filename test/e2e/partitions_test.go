package e2e

import (
	"fmt"
	"maps"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// partitionTests are claims for partitions, each beside the others.
var partitionTests = []claimTest{
	{"by profile", partition("one", profile("1g.10gb", "")), func(e *env) {
		e.pod("infer", on(node1), fromTemplate("one"))
		e.attribute(e.verify("infer")[0], "profile", "1g.10gb")
		e.told("infer")
	}},
	{"the smallest with enough memory", partition("one", `device.capacity["dovetail.dev"].memory.compareTo(quantity("15Gi")) >= 0`), func(e *env) {
		e.pod("infer", on(node1), fromTemplate("one"))
		e.attribute(e.verify("infer")[0], "profile", "1g.20gb")
	}},
	{"two of one GPU", twoPartitions("matchAttribute: dovetail.dev/parentUUID"), func(e *env) {
		e.pod("pair", on(node1), fromTemplate("two"))
		devices := e.verify("pair")
		e.count(devices, 2)
		e.attribute(devices[0], "parentUUID", parent(devices[1]))
	}},
	{"of two GPUs", twoPartitions("distinctAttribute: dovetail.dev/parentUUID"), func(e *env) {
		e.pod("pair", on(node1), fromTemplate("two"))
		devices := e.verify("pair")
		e.count(devices, 2)
		if parent(devices[0]) == parent(devices[1]) {
			e.Errorf("%s and %s are of one GPU", devices[0].Name, devices[1].Name)
		}
	}},
	{"one for each container", twoPartitions("matchAttribute: dovetail.dev/parentUUID"), func(e *env) {
		e.pod("pair", on(node1), containers("main", "second"), fromTemplate("two"), only("main", "a", "two"), only("second", "b", "two"))
		e.count(e.verify("pair"), 2)
	}},
	{"shared by two Pods", claimOf(partition("shared", profile("2g.20gb", ""))), func(e *env) {
		e.pod("first", on(node1), fromClaim("shared"))
		first := e.verify("first")
		e.pod("second", fromClaim("shared"))
		second := e.verify("second")
		e.attribute(second[0], "uuid", *first[0].Attributes["uuid"].StringValue)
		e.gone("first")
		e.verify("second")
	}},
	{"replicas", partition("one", profile("1g.10gb", "")), func(e *env) {
		held := map[string]string{}
		for _, pod := range e.deployment("infer", 3, on(node1), fromTemplate("one")) {
			devices := e.verify(pod)
			e.count(devices, 1)
			if other, ok := held[devices[0].Name]; ok {
				e.Errorf("%s is held by %s and %s", devices[0].Name, other, pod)
			}
			held[devices[0].Name] = pod
		}
	}},
	{"beside a whole GPU", partition("part", profile("1g.10gb", "")) + "---" + template("whole", gpuRequest), func(e *env) {
		e.pod("infer", on(node1), fromTemplate("part"))
		e.pod("train", on(node1), fromTemplate("whole"))
		gpu := e.verify("train")[0]
		e.attribute(gpu, "type", "gpu")
		if part := e.verify("infer")[0]; parent(part) == *gpu.Attributes["uuid"].StringValue {
			e.Errorf("%s is a partition of %s", part.Name, gpu.Name)
		}
	}},
	{"of a profile that there is not", partition("one", profile("1g.11gb", "")), func(e *env) {
		e.pod("infer", fromTemplate("one"))
		e.event("infer", "FailedScheduling", "cannot allocate all claims")
	}},
}

func TestPartitions(t *testing.T) { sideBySide(t, nil, partitionTests) }

// TestSevenPartitionsOfOneGPU: seven of the smallest fill a GPU before another one is
// divided. What is published stays as it is while partitions come and go.
func TestSevenPartitionsOfOneGPU(t *testing.T) {
	e := alone(t)
	before := e.versions(node1)
	e.apply(partition("one", profile("1g.10gb", "")))
	const count = 8
	for i := range count {
		e.pod(fmt.Sprintf("pod-%d", i), on(node1), fromTemplate("one"))
	}
	held, perGPU := map[string]string{}, map[string]int{}
	for i := range count {
		pod := fmt.Sprintf("pod-%d", i)
		devices := e.verify(pod)
		e.count(devices, 1)
		if other, ok := held[devices[0].Name]; ok {
			e.Errorf("%s is held by %s and %s", devices[0].Name, other, pod)
		}
		held[devices[0].Name] = pod
		perGPU[parent(devices[0])]++
	}
	if want := map[string]int{e.gpu(node1, 0).Spec.UUID: 7, e.gpu(node1, 1).Spec.UUID: 1}; !maps.Equal(perGPU, want) {
		t.Errorf("partitions by GPU: %v, want %v", perGPU, want)
	}
	agree(t)
	e.must(e.DeletePods(e.ctx, e.namespace))
	// Longer than the agent takes to look at the hardware after an event and publish.
	e.must(harness.Pass(e.ctx, 2*time.Second))
	if after := e.versions(node1); !maps.Equal(after, before) {
		t.Errorf("the slices of %s changed: %v, then %v", node1, before, after)
	}
}

// TestThreeAndFour: 3g and 4g fit on one GPU, whichever comes first.
func TestThreeAndFour(t *testing.T) {
	for _, order := range [][2]string{{"3g.40gb", "4g.40gb"}, {"4g.40gb", "3g.40gb"}} {
		t.Run(order[0]+" first", func(t *testing.T) {
			e := alone(t)
			gpu := e.gpu(node1, 0).Spec.UUID
			for i, name := range order {
				pod := fmt.Sprintf("pod-%d", i)
				e.apply(partition(pod, profile(name, gpu)))
				e.pod(pod, fromTemplate(pod))
				e.attribute(e.verify(pod)[0], "profile", name)
			}
			e.verify("pod-0")
			agree(t)
		})
	}
}

// TestWholeGPUWaitsForPartition: all GPUs but one are taken, and of that one a
// partition is out.
func TestWholeGPUWaitsForPartition(t *testing.T) {
	e := alone(t)
	e.apply(partition("part", profile("1g.10gb", "")))
	e.apply(template("others", fmt.Sprintf("{deviceClassName: gpu.dovetail.dev, count: %d}", machines[node1].gpus-1)))
	e.apply(template("whole", gpuRequest))
	e.pod("infer", on(node1), fromTemplate("part"))
	part := e.verify("infer")[0]
	e.pod("others", on(node1), fromTemplate("others"))
	e.count(e.verify("others"), machines[node1].gpus-1)

	e.pod("train", on(node1), fromTemplate("whole"))
	e.event("train", "FailedScheduling", "cannot allocate all claims")
	agree(t)
	e.gone("infer")
	e.attribute(e.verify("train")[0], "uuid", parent(part))
}

// parent is the GPU of a partition.
func parent(d resourceapi.Device) string { return *d.Attributes["parentUUID"].StringValue }

// versions of a node's slices, by name.
func (e *env) versions(node string) map[string]string {
	e.Helper()
	all, err := e.WaitSlices(e.ctx, node, "a whole pool", func([]*resourceapi.ResourceSlice) bool { return true })
	e.must(err)
	versions := map[string]string{}
	for _, s := range all {
		versions[s.Name] = s.ResourceVersion
	}
	return versions
}

// partitioned compares a GPU's MIG mode and the number of its GPU instances.
func (e *env) partitioned(node string, index int, enabled bool, instances int) {
	e.Helper()
	gpu := e.gpu(node, index)
	if gpu.MIGEnabled != enabled || len(gpu.Instances) != instances {
		e.Errorf("GPU %d on %s: MIG mode is %t and there are %d GPU instances, want %t and %d: %+v",
			index, node, gpu.MIGEnabled, len(gpu.Instances), enabled, instances, gpu.Instances)
	}
}

// deployment makes one of Pods with podcheck, waits until they run, and returns their
// names. It goes with the namespace.
func (e *env) deployment(name string, replicas int32, options ...option) []string {
	e.Helper()
	labels := map[string]string{"app": name}
	pod := newPod(name, options...)
	deployments := e.Kube.AppsV1().Deployments(e.namespace)
	_, err := deployments.Create(e.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		},
	}, metav1.CreateOptions{})
	e.must(err)
	set := harness.Set{Client: e.Kube.AppsV1().RESTClient(), Resource: "deployments", Namespace: e.namespace}
	_, err = harness.WaitOne(e.ctx, set, name, "the replicas of "+name, func(d *appsv1.Deployment) (bool, error) {
		return d != nil && d.Status.ReadyReplicas == replicas, nil
	})
	e.must(err)
	list, err := e.Kube.CoreV1().Pods(e.namespace).List(e.ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	e.must(err)
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	if len(names) != int(replicas) {
		e.Fatalf("Deployment %s has Pods %v, want %d", name, names, replicas)
	}
	return names
}
