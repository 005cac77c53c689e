package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// patience bounds a test. Pods start in a second or two and kubelet's retries come
// after some ten; Kubernetes' own watches can need a minute to come back after an
// outage of the API server.
const patience = 150 * time.Second

// env is what a test works in: a namespace of its own.
type env struct {
	*testing.T
	*harness.Cluster
	ctx       context.Context
	namespace string
}

// namespaces numbers them; a cluster may have those of an earlier run.
var namespaces atomic.Int64

func init() { namespaces.Store(time.Now().Unix() << 12) }

// alone starts a test that has the cluster to itself: when it is over, hardware,
// journal, CDI and API must agree.
func alone(t *testing.T) *env {
	t.Helper()
	t.Cleanup(func() { agree(t) })
	return start(t, nil)
}

// unchecked is for namespaces whose claims the webhook does not see, as when it is away:
// what is wrong with them is told when they are prepared.
var unchecked = map[string]string{"dovetail.dev/admission": "ignore"}

// start starts a test beside others.
func start(t *testing.T, labels map[string]string) *env {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	e := &env{T: t, Cluster: cluster, ctx: ctx, namespace: fmt.Sprintf("%s-%x", slug(t.Name()), namespaces.Add(1))}
	if err := e.CreateNamespace(ctx, e.namespace, labels); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if t.Failed() {
			e.explain()
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := e.EmptyNamespace(ctx, e.namespace); err != nil {
			t.Error(err)
		}
	})
	return e
}

// agree is the invariant check, for when no claim is on its way in or out.
func agree(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	differences, err := cluster.Invariants(ctx, node1, node2)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differences {
		t.Error(d)
	}
}

// explain prints what a person needs to find out why a test failed.
func (e *env) explain() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e.Log(e.Explain(ctx, e.namespace, node1, node2))
}

// afterwards does something when the test is over, with time of its own.
func (e *env) afterwards(do func()) {
	e.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		e.ctx = ctx
		do()
	})
}

// must ends the test on an error.
func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// apply creates what a manifest has.
func (e *env) apply(manifest string) {
	e.Helper()
	e.must(e.Apply(e.ctx, e.namespace, manifest))
}

// ready waits until a Pod's containers run.
func (e *env) ready(pod string) *corev1.Pod {
	e.Helper()
	p, err := e.WaitReady(e.ctx, e.namespace, pod)
	e.must(err)
	return p
}

// gone deletes a Pod and waits until it is gone.
func (e *env) gone(pod string) {
	e.Helper()
	e.must(e.DeletePod(e.ctx, e.namespace, pod))
}

// event waits for a Pod's event of that reason, with all the parts in its message.
func (e *env) event(pod, reason string, parts ...string) {
	e.Helper()
	_, err := e.WaitEvent(e.ctx, e.namespace, "Pod", pod, harness.Event(reason, parts...))
	e.must(err)
}

// slug makes a test's name one of a namespace.
func slug(name string) string {
	name = strings.TrimPrefix(name, "Test")
	name = strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name))
	return strings.Trim(name[:min(len(name), 40)], "-")
}
