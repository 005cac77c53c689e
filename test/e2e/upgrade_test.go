package e2e

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestUpgrade: while all agents are replaced, no running Pod notices, and a Pod
// that comes meanwhile starts.
func TestUpgrade(t *testing.T) {
	e := alone(t)
	e.apply(template("one", gpuRequest))
	e.pod("a", on(node1), fromTemplate("one"))
	e.pod("b", on(node1), fromTemplate("one"))
	e.pod("c", on(node2), fromTemplate("one"))
	e.apply(partition("part", profile("1g.10gb", "")))
	e.pod("d", on(node1), fromTemplate("part"))
	check := e.undisturbed("a", "b", "c", "d")
	before, err := e.Agent(e.ctx, node1)
	e.must(err)

	e.replaceAgents()
	e.pod("meanwhile", on(node1), fromTemplate("one"))
	e.pod("also", on(node1), fromTemplate("part"))
	e.verify("meanwhile")
	e.verify("also")
	e.rolledOut()
	after, err := e.WaitAgent(e.ctx, node1)
	e.must(err)
	if after.UID == before.UID {
		e.Error("the agent was not replaced")
	}
	check()
	e.pod("later", on(node1), fromTemplate("one"))
	for _, name := range []string{"a", "b", "c", "d", "later"} {
		e.verify(name)
	}
	agree(t)
}

// replaceAgents changes the DaemonSet's template as an upgrade does.
func (e *env) replaceAgents() {
	e.Helper()
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"e2e/upgraded":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	_, err := e.Kube.AppsV1().DaemonSets(harness.Namespace).Patch(e.ctx, harness.Release+"-node", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	e.must(err)
}

// rolledOut waits until the DaemonSet's Pods are all of its new template.
func (e *env) rolledOut() {
	e.Helper()
	sets := harness.Set{Client: e.Kube.AppsV1().RESTClient(), Resource: "daemonsets", Namespace: harness.Namespace}
	_, err := harness.WaitOne(e.ctx, sets, harness.Release+"-node", "the agents to be replaced", func(d *appsv1.DaemonSet) (bool, error) {
		return d != nil && d.Status.ObservedGeneration == d.Generation &&
			d.Status.UpdatedNumberScheduled == d.Status.DesiredNumberScheduled &&
			d.Status.NumberAvailable == d.Status.DesiredNumberScheduled, nil
	})
	e.must(err)
}
