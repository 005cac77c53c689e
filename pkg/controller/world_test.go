package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/test/apiserver"
	"github.com/dovetail-dra/dovetail/test/sched"
)

// world is a real API server, the controller, and by hand what nodes and the scheduler
// do.
type world struct {
	*testing.T
	config *rest.Config
	client.WithWatch
	sched  *sched.Scheduler
	claims int
	// writes that the controller has made.
	writes   *atomic.Int64
	registry *prometheus.Registry
	delay    time.Duration // see Options
	stop     func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	config := apiserver.Start(t)
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, config: config, WithWatch: c, sched: sched.New(), writes: &atomic.Int64{}, delay: 20 * time.Millisecond}
	w.installChart()
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

// chart has what the chart makes by default.
const chart = "../../test/chart/testdata/default.yaml"

// namespace and user of the chart's controller.
const (
	namespace = "dovetail-system"
	user      = "system:serviceaccount:dovetail-system:dovetail-controller"
)

// installChart gives the controller what the chart lets it do, and no more.
func (w *world) installChart() {
	w.Helper()
	content, err := os.ReadFile(chart)
	w.must(err)
	w.must(w.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	roles := 0
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		if !strings.Contains(document, "component: controller") || !strings.Contains(document, "rbac.authorization.k8s.io") {
			continue
		}
		object := &unstructured.Unstructured{}
		w.must(yaml.Unmarshal([]byte(document), &object.Object))
		w.must(w.Create(w.Context(), object))
		roles++
	}
	if roles < 4 {
		w.Fatalf("%d roles and bindings in %s", roles, chart)
	}
}

// start the controller; stop ends it, and waits.
func (w *world) start() {
	w.Helper()
	w.registry = prometheus.NewRegistry()
	w.stop = w.replica(w.registry, w.writes)
}

// replica of the controller, as the chart's user. Its writes are counted, but for those
// to the Lease. The function that is returned ends it, and waits.
func (w *world) replica(registry *prometheus.Registry, writes *atomic.Int64) func() {
	w.Helper()
	config := rest.CopyConfig(w.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	config.Wrap(countingTransport(writes))
	mgr, err := New(config, Options{
		LeaderElection: true, Namespace: namespace, MetricsAddress: "0", HealthAddress: "0", Delay: w.delay, Registry: registry,
	})
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	})
}

// countingTransport counts writes. One that the API server refuses, and one that is the
// same as the last, come from a cache that is behind, and change nothing.
func countingTransport(writes *atomic.Int64) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return &counting{RoundTripper: next, writes: writes, last: map[string]string{}}
	}
}

type counting struct {
	http.RoundTripper
	writes *atomic.Int64

	mu   sync.Mutex // guards last
	last map[string]string
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/leases") || strings.Contains(r.URL.Path, "/events") {
		return c.RoundTripper.RoundTrip(r)
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	what := r.Method + r.URL.Path
	if c.repeats(what, string(body)) {
		return c.RoundTripper.RoundTrip(r)
	}
	c.writes.Add(1)
	response, err := c.RoundTripper.RoundTrip(r)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		c.writes.Add(-1)
		c.repeats(what, "")
	}
	return response, err
}

func (c *counting) repeats(what, content string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.last[what]
	c.last[what] = content
	return content != "" && content == before
}

// class of that name; spec is YAML.
func (w *world) class(name, spec string) *v1alpha1.PartitionClass {
	w.Helper()
	pc := &v1alpha1.PartitionClass{}
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, "metadata: {name: %s}\nspec: %s", name, spec), pc); err != nil {
		w.Fatal(err)
	}
	w.must(w.Create(w.Context(), pc))
	return pc
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// until an object of that type and name is as it should be; nil where it was deleted.
func until[T client.Object](w *world, what, name string, list client.ObjectList, is func(T) bool, options ...client.ListOption) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patiencetest.Limit)
	defer cancel()
	watch, err := w.Watch(ctx, list, append(options, client.MatchingFields{"metadata.name": name})...)
	w.must(err)
	defer watch.Stop()
	var last T
	for {
		select {
		case e, ok := <-watch.ResultChan():
			object, isType := e.Object.(T)
			switch {
			case !ok:
				w.Fatalf("%s: the watch ended before %s: %+v", name, what, last)
			case !isType:
				continue
			}
			if last = object; e.Type == "DELETED" {
				last = *new(T)
			} else {
				last.SetManagedFields(nil)
			}
			if is(last) {
				return
			}
		case <-ctx.Done():
			w.Fatalf("%s: %s does not come about: %+v", name, what, last)
		}
	}
}

func (w *world) untilClass(name, what string, is func(*v1alpha1.PartitionClass) bool) {
	w.Helper()
	until(w, what, name, &v1alpha1.PartitionClassList{}, is)
}

// untilMeasured waits until the controller has looked at the classes since it started.
func (w *world) untilMeasured(classes ...string) {
	w.Helper()
	w.must(wait.PollUntilContextTimeout(w.Context(), 10*time.Millisecond, patiencetest.Limit, true, func(context.Context) (bool, error) {
		families, err := w.registry.Gather()
		found := fmt.Sprint(families)
		for _, class := range classes {
			if !strings.Contains(found, class) {
				return false, err
			}
		}
		return true, err
	}))
}

// untilGone waits for the deletion of an object.
func untilGone[T client.Object](w *world, name string, object T, list client.ObjectList) {
	w.Helper()
	switch err := w.Get(w.Context(), client.ObjectKey{Name: name}, object); {
	case apierrors.IsNotFound(err):
		return
	default:
		w.must(err)
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: object.GetResourceVersion()}}
	until(w, "its end", name, list, func(o T) bool { return any(o) == any(*new(T)) }, from)
}

// has says whether a class has a condition with that status, reason, and part of the
// message.
func has(pc *v1alpha1.PartitionClass, kind, status, reason, part string) bool {
	c := meta.FindStatusCondition(pc.Status.Conditions, kind)
	return c != nil && string(c.Status) == status && c.Reason == reason && strings.Contains(c.Message, part) && c.ObservedGeneration == pc.Generation
}

func (w *world) deviceClass(name string) *resourceapi.DeviceClass {
	w.Helper()
	dc := &resourceapi.DeviceClass{}
	w.must(w.Get(w.Context(), client.ObjectKey{Name: name}, dc))
	return dc
}

// publish a machine as a node does, all at once.
func (w *world) publish(node string, m machine.Machine) {
	w.Helper()
	w.sched.Publish(node, catalog.Build(m, catalog.Options{}))
	for _, s := range w.sched.Slices(node) {
		made := s.DeepCopy()
		made.UID = ""
		w.must(w.Create(w.Context(), made))
	}
}

// claim one device of a class, allocated as the scheduler does it.
func (w *world) claim(class string) *resourceapi.ResourceClaim {
	w.Helper()
	w.claims++
	claim := sched.Claim(fmt.Sprint("claim-", w.claims), sched.RequestOf("device", class))
	claim.Namespace = corev1.NamespaceDefault
	made := claim.DeepCopy()
	made.UID = ""
	w.must(w.Create(w.Context(), made))
	node, err := w.sched.Allocate(w.Context(), claim)
	w.must(err)
	if node == "" {
		w.must(errors.New("no node has a device of " + class))
	}
	made.Status.Allocation = claim.Status.Allocation
	w.must(w.Status().Update(w.Context(), made))
	return made
}
