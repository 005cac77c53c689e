package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// some classes, so that a controller that is killed is in the midst of them.
const someClasses = 10

// TestControllerKilled: the leading replica is killed when it has begun with the first of
// several classes; another finishes. Then both are killed.
func TestControllerKilled(t *testing.T) {
	e := withClasses(t)
	e.controllersBack()
	leader := e.leader()
	began := make(chan error, 1)
	go func() {
		_, err := e.WaitClass(e.ctx, "c-0", "be begun with", func(c *v1alpha1.PartitionClass) bool { return c != nil && len(c.Finalizers) > 0 })
		began <- err
	}()
	for i := range someClasses {
		class := &v1alpha1.PartitionClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c-%d", i)}}
		class.Spec.Shape.GPU = &v1alpha1.GPUShape{}
		e.must(e.CreateClass(e.ctx, class))
	}
	e.must(<-began)
	e.killController(leader)
	for i := range someClasses {
		name := fmt.Sprintf("c-%d", i)
		e.untilClass(name, "be ready", ready)
		e.counts(name, 2, 12, 0, 12)
	}
	all, err := e.Kube.ResourceV1().DeviceClasses().List(e.ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=dovetail-controller"})
	e.must(err)
	if len(all.Items) != someClasses {
		t.Errorf("%d DeviceClasses for %d classes", len(all.Items), someClasses)
	}

	pods, err := e.Controllers(e.ctx)
	e.must(err)
	for i := range pods {
		e.killController(&pods[i])
	}
	e.must(e.PatchClass(e.ctx, "c-0", `{"spec":{"hardware":{"products":["NVIDIA L4"]}}}`))
	e.counts("c-0", 1, 2, 0, 2)
}

// leader is the Pod of the replica that works.
func (e *env) leader() *corev1.Pod {
	e.Helper()
	leases := harness.Set{Client: e.Kube.CoordinationV1().RESTClient(), Resource: "leases", Namespace: harness.Namespace}
	lease, err := harness.WaitOne(e.ctx, leases, "dovetail-controller", "a controller to lead", func(l *coordinationv1.Lease) (bool, error) {
		return l != nil && l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != "", nil
	})
	e.must(err)
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	pod, err := e.Kube.CoreV1().Pods(harness.Namespace).Get(e.ctx, name, metav1.GetOptions{})
	e.must(err)
	return pod
}

// killController kills a replica, as one that is out of memory is.
func (e *env) killController(pod *corev1.Pod) {
	e.Helper()
	_, err := e.Shell(e.ctx, pod.Spec.NodeName, fmt.Sprintf(`n=0
		for p in $(pgrep -f '^[^ ]*dovetail-controller run'); do
			grep -qs %s /proc/$p/cgroup && kill -9 $p && n=1
		done
		test $n = 1`, pod.UID))
	e.must(err)
}

// controllersBack has the controller as it was when the test is over.
func (e *env) controllersBack() {
	e.afterwards(func() {
		e.scaleController(replicas)
		e.must(e.WaitController(e.ctx))
	})
}

func (e *env) scaleController(count int) {
	e.Helper()
	_, err := e.Kube.AppsV1().Deployments(harness.Namespace).Patch(e.ctx, harness.ControllerName, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, count), metav1.PatchOptions{})
	e.must(err)
}

// TestNoController: without any replica nothing that runs stops, Pods of classes start, and
// what people write is taken, unseen. What waits is done when there is one again.
func TestNoController(t *testing.T) {
	e := withClasses(t)
	e.class("shared", "{shape: {mps: {memory: 10Gi}}, hardware: {products: ['NVIDIA L4']}, extendedResourceName: example.com/gpu-shared}")
	e.pod("before", limits("example.com/gpu-shared", 1), fills("9G", "2G"))
	e.limited("before")
	check := e.undisturbed("before")

	e.controllersBack()
	e.scaleController(0)
	_, err := harness.Wait(e.ctx, e.Pods(harness.Namespace), "the controller to be gone", func(pods []*corev1.Pod) (bool, error) {
		return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Labels["app.kubernetes.io/component"] == "controller" }), nil
	})
	e.must(err)
	e.pod("during", limits("example.com/gpu-shared", 1), fills("9G", "2G"))
	e.limited("during")
	began := time.Now()
	e.apply(template("wrong", share("0", 5))) // which the webhook would refuse
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("without a controller, a template takes %s", took)
	}
	later := &v1alpha1.PartitionClass{ObjectMeta: metav1.ObjectMeta{Name: "later"}}
	later.Spec.Shape.GPU = &v1alpha1.GPUShape{}
	e.must(e.CreateClass(e.ctx, later))
	e.must(e.DeleteClass(e.ctx, "shared"))
	check()

	e.scaleController(replicas)
	e.must(e.WaitController(e.ctx))
	e.untilClass("later", "be ready", ready)
	e.untilClass("shared", "wait for its claims", func(c *v1alpha1.PartitionClass) bool {
		return has(c, v1alpha1.ConditionDeleting, metav1.ConditionTrue, "InUse") && c.Status.Allocated == 2
	})
	e.refusedSoon(claimOf(template("wrong", share("0", 5))), "memory]: 0 is too little")
	check()
}
