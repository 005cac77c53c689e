package e2e

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// agentOff ends the agent on a node and waits until it is gone.
func (e *env) agentOff(node string) {
	e.Helper()
	e.must(e.Label(e.ctx, node, agentHere, ""))
	e.must(e.WaitNoAgent(e.ctx, node))
}

// agentOn starts the agent on a node and waits until it serves.
func (e *env) agentOn(node string) *corev1.Pod {
	e.Helper()
	e.must(e.Label(e.ctx, node, agentHere, "here"))
	pod, err := e.WaitAgent(e.ctx, node)
	e.must(err)
	return pod
}

// agentBack has the agent back on a node when the test is over, whatever became of
// it.
func (e *env) agentBack(node string) {
	e.afterwards(func() { e.agentOn(node) })
}

// gpu is a node's GPU with that index.
func (e *env) gpu(node string, index int) simulator.GPU {
	e.Helper()
	state, err := e.Machine(e.ctx, node)
	e.must(err)
	return state.GPU(index)
}

// byName is the GPU of a device.
func (e *env) byName(node string, d resourceapi.Device) simulator.GPU {
	e.Helper()
	state, err := e.Machine(e.ctx, node)
	e.must(err)
	gpu, err := state.Find(*d.Attributes["uuid"].StringValue)
	e.must(err)
	return gpu
}

// deviceName is under which name a GPU is published.
func deviceName(g simulator.GPU) string {
	return (&machine.GPU{Address: g.Spec.Address}).Name()
}

// computeMode compares a GPU's.
func (e *env) computeMode(node string, index int, want machine.ComputeMode) {
	e.Helper()
	if got := e.gpu(node, index).ComputeMode; got != want {
		e.Errorf("GPU %d on %s is in compute mode %s, want %s", index, node, got, want)
	}
}

// undisturbed returns a check that the Pods' containers, which run now, are the
// very same later.
func (e *env) undisturbed(pods ...string) (check func()) {
	e.Helper()
	before := map[string][]string{}
	for _, name := range pods {
		before[name] = identities(e.ready(name))
	}
	return func() {
		e.Helper()
		for _, name := range pods {
			if now := identities(e.ready(name)); !slices.Equal(now, before[name]) {
				e.Errorf("Pod %s was disturbed: its containers were %v, and are %v", name, before[name], now)
			}
		}
	}
}

// identities of a Pod's containers, with how often they were restarted.
func identities(p *corev1.Pod) []string {
	var ids []string
	for _, s := range p.Status.ContainerStatuses {
		ids = append(ids, s.ContainerID+"×"+strconv.Itoa(int(s.RestartCount)))
	}
	return ids
}

// claimOfPod is the one claim of a Pod.
func (e *env) claimOfPod(name string) *resourceapi.ResourceClaim {
	e.Helper()
	pod, err := e.WaitPod(e.ctx, e.namespace, name, "have its claim", func(p *corev1.Pod) bool {
		return len(p.Status.ResourceClaimStatuses) > 0 || p.Spec.ResourceClaims[0].ResourceClaimName != nil
	})
	e.must(err)
	claims, err := e.Claims(e.ctx, pod)
	e.must(err)
	return claims[pod.Spec.ResourceClaims[0].Name]
}

// allocateByHand makes a claim of a template's manifest and writes its allocation,
// as no scheduler would.
func (e *env) allocateByHand(template, name string, result resourceapi.DeviceRequestAllocationResult) {
	e.Helper()
	objects, err := harness.Objects(claimOf(template))
	e.must(err)
	e.must(e.Create(e.ctx, e.namespace, objects[0]))
	claims := e.Kube.ResourceV1().ResourceClaims(e.namespace)
	claim, err := claims.Get(e.ctx, name, metav1.GetOptions{})
	e.must(err)
	result.Request, result.Driver = "gpu", harness.Driver
	allocation := &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{result},
	}}
	for _, c := range claim.Spec.Devices.Config {
		allocation.Devices.Config = append(allocation.Devices.Config, resourceapi.DeviceAllocationConfiguration{
			Source: resourceapi.AllocationConfigSourceClaim, DeviceConfiguration: c.DeviceConfiguration,
		})
	}
	claim.Status.Allocation = allocation
	_, err = claims.UpdateStatus(e.ctx, claim, metav1.UpdateOptions{})
	e.must(err)
}

// bound places a Pod on a node past the scheduler.
func bound(node string) option {
	return func(p *corev1.Pod) { p.Spec.NodeName = node }
}

// prepareFailed waits until the kubelet has told on the Pod that preparing its
// claims failed, in words that have all the parts.
func (e *env) prepareFailed(pod string, parts ...string) {
	e.Helper()
	e.event(pod, "FailedPrepareDynamicResources", parts...)
}

// nodeEvent waits for an event about a node.
func (e *env) nodeEvent(node, reason string, parts ...string) {
	e.Helper()
	_, err := e.WaitEvent(e.ctx, "default", "Node", node, harness.Event(reason, parts...))
	e.must(err)
}

// metric reads one of the agent's.
func (e *env) metric(node, series, want string) {
	e.Helper()
	got, err := e.Metric(e.ctx, node, series)
	e.must(err)
	if got != want {
		e.Errorf("metric %s on %s is %q, want %s", series, node, got, want)
	}
}

// recorded is the journal's record of a claim; nil where there is none.
func (e *env) recorded(node, uid string) []byte {
	e.Helper()
	s, err := e.Snapshot(e.ctx, node)
	e.must(err)
	return s.Files[harness.ClaimsDir+"/"+uid+".json"]
}

// bootID is the one in a record.
func bootID(record []byte) string {
	var r struct{ BootID string }
	if err := json.Unmarshal(record, &r); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(r.BootID)
}
