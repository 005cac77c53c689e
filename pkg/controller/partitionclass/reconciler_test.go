package partitionclass

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/controller/usage"
)

// The lives of classes on a real API server are in pkg/controller; here is what goes
// wrong.
type world struct {
	*testing.T
	*Reconciler
}

func newWorld(t *testing.T, calls interceptor.Funcs, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, resourceapi.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.PartitionClass{}).WithObjects(objects...).WithInterceptorFuncs(calls).Build()
	return &world{t, &Reconciler{Client: c, Events: events.NewFakeRecorder(10), Usage: usage.New(), Metrics: NewMetrics(prometheus.NewRegistry()), Delay: Delay}}
}

func partitionClass(t *testing.T, spec string) *v1alpha1.PartitionClass {
	t.Helper()
	pc := &v1alpha1.PartitionClass{}
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, "metadata: {name: small, uid: its-uid, generation: 3}\nspec: %s", spec), pc); err != nil {
		t.Fatal(err)
	}
	return pc
}

// reconcile returns the class as it is then.
func (w *world) reconcile() (*v1alpha1.PartitionClass, error) {
	w.Helper()
	_, err := w.Reconcile(w.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "small"}})
	pc := &v1alpha1.PartitionClass{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Name: "small"}, pc); err != nil {
		w.Fatal(err)
	}
	return pc, err
}

func (w *world) wantCondition(pc *v1alpha1.PartitionClass, kind, status, reason, part string) {
	w.Helper()
	c := meta.FindStatusCondition(pc.Status.Conditions, kind)
	if c == nil || string(c.Status) != status || c.Reason != reason || !strings.Contains(c.Message, part) || c.ObservedGeneration != 3 {
		w.Errorf("condition %s is %+v, want %s, %s, %q", kind, c, status, reason, part)
	}
}

// The schema lets a node selector pass that is none.
func TestInvalidClass(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, partitionClass(t, `{shape: {gpu: {}}, hardware: {nodeSelector: {matchExpressions: [{key: a, operator: Has}]}}}`))
	pc, err := w.reconcile()
	if err != nil || pc.Status.DeviceClass != "" || len(pc.Finalizers) != 0 {
		t.Errorf("error %v, %+v", err, pc)
	}
	w.wantCondition(pc, v1alpha1.ConditionReady, "False", ReasonInvalid, "spec.hardware.nodeSelector.matchExpressions[0].operator")
	w.wantCondition(pc, v1alpha1.ConditionMatched, "Unknown", ReasonInvalid, "nothing was looked for")
}

// claim has one device through the class.
func (w *world) claim(uid types.UID) {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: uid}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "r", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "small"}}}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "r", Driver: catalog.DriverName, Pool: "node-1", Device: "gpu-0"}},
	}}
	w.Usage.SetClaim(claim)
}

// publish a device on node-1.
func (w *world) publish(d resourceapi.Device) {
	slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	slice.Spec = resourceapi.ResourceSliceSpec{
		Driver: catalog.DriverName, Pool: resourceapi.ResourcePool{Name: "node-1", ResourceSliceCount: 1}, Devices: []resourceapi.Device{d},
	}
	w.Usage.SetSlice(slice)
}

// What is free by the name of somebody else's DeviceClass is not free through the class.
func TestForeignDeviceClass(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, partitionClass(t, `{shape: {gpu: {}}}`), &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "small"}})
	kind := "gpu"
	w.publish(resourceapi.Device{Name: "gpu-1", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"type": {StringValue: &kind}}})
	w.claim("1")
	pc, err := w.reconcile()
	if err != nil || pc.Status.Devices != 1 || pc.Status.Free != 0 || pc.Status.Allocated != 0 {
		t.Errorf("error %v, %+v", err, pc.Status)
	}
}

// Every status that is written is sent to every node.
func TestManyNodesMoreDelay(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, partitionClass(t, `{shape: {gpu: {}}}`))
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		nodes int
		want  time.Duration
	}{{1, time.Second}, {200, time.Second}, {1000, 5 * time.Second}} {
		for n := range test.nodes {
			w.Usage.SetSlice(&resourceapi.ResourceSlice{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("s", n)},
				Spec:       resourceapi.ResourceSliceSpec{Driver: catalog.DriverName, Pool: resourceapi.ResourcePool{Name: fmt.Sprint("n", n)}},
			})
		}
		var q delayed
		w.later(&q)
		if len(q.after) != 1 || q.after[0] != test.want {
			t.Errorf("%d nodes: %v", test.nodes, q.after)
		}
	}
}

// delayed is a queue that only notes the delays.
type delayed struct {
	queue
	after []time.Duration
}

func (d *delayed) AddAfter(_ ctrl.Request, after time.Duration) { d.after = append(d.after, after) }

func TestDeviceClassRefused(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		says bool // on the class
	}{
		"refused":  {apierrors.NewForbidden(resourceapi.Resource("deviceclasses"), "small", errors.New("by a policy")), true},
		"too slow": {apierrors.NewAlreadyExists(resourceapi.Resource("deviceclasses"), "small"), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return test.err },
			}, partitionClass(t, `{shape: {gpu: {}}}`))
			pc, err := w.reconcile()
			if !errors.Is(err, test.err) || !strings.Contains(err.Error(), "DeviceClass small") {
				t.Errorf("error %v", err)
			}
			if len(pc.Finalizers) != 1 || pc.Status.DeviceClass != "" {
				t.Errorf("%+v", pc)
			}
			if test.says {
				w.wantCondition(pc, v1alpha1.ConditionReady, "False", ReasonRefused, "by a policy")
			} else if c := meta.FindStatusCondition(pc.Status.Conditions, v1alpha1.ConditionReady); c != nil {
				t.Errorf("nothing is wrong, but the class says %+v", c)
			}
		})
	}
}

// The DeviceClass of an earlier class of the same name is not taken over: it is about
// to go.
func TestEarlierClass(t *testing.T) {
	earlier := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "small"}}
	mark(earlier, &v1alpha1.PartitionClass{ObjectMeta: metav1.ObjectMeta{Name: "small", UID: "another-uid"}})
	w := newWorld(t, interceptor.Funcs{}, partitionClass(t, `{shape: {gpu: {}}}`), earlier)
	pc, err := w.reconcile()
	if err != nil {
		t.Fatal(err)
	}
	w.wantCondition(pc, v1alpha1.ConditionReady, "False", ReasonExists, "an earlier PartitionClass")
}

// An agent of another version may publish what the selectors cannot be asked of.
func TestSelectorFails(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, partitionClass(t, `{shape: {mig: {profile: 1g.10gb}}}`))
	kind := "mig"
	w.publish(resourceapi.Device{Name: "mig-0", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"type": {StringValue: &kind}}})
	pc, err := w.reconcile()
	if err != nil {
		t.Fatal(err)
	}
	w.wantCondition(pc, v1alpha1.ConditionReady, "True", ReasonApplied, "small")
	w.wantCondition(pc, v1alpha1.ConditionMatched, "Unknown", ReasonSelector, "pool node-1: device mig-0")
	w.wantCondition(pc, v1alpha1.ConditionMatched, "Unknown", ReasonSelector, "bring the agents of all nodes to the controller's version")
}

// A status that cannot be written is tried again.
func TestStatusRefused(t *testing.T) {
	refused := errors.New("no")
	w := newWorld(t, interceptor.Funcs{
		SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			return refused
		},
	}, partitionClass(t, `{shape: {gpu: {}}}`))
	if _, err := w.reconcile(); !errors.Is(err, refused) || !strings.Contains(err.Error(), "status of PartitionClass small") {
		t.Errorf("error %v", err)
	}
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	gathered := func() string {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, f := range families {
			for _, metric := range f.Metric {
				all = append(all, fmt.Sprint(f.GetName(), "{", metric.Label[0].GetValue(), "} ", metric.Gauge.GetValue()))
			}
		}
		return strings.Join(all, ", ")
	}
	m.set("small", &v1alpha1.PartitionClassStatus{Nodes: 1, Devices: 56, Allocated: 2, Free: 49})
	if got, want := gathered(), "dovetail_class_allocated{small} 2, dovetail_class_devices{small} 56, dovetail_class_free{small} 49, dovetail_class_nodes{small} 1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	m.forget("small")
	if got := gathered(); got != "" {
		t.Errorf("of a class that has gone: %s", got)
	}
}
