package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// arrivals are what Pods come with.
var arrivals = map[string]string{
	"pair": pairsOf(1), "pairs": pairsOf(2),
	"gpu": gpuRequest, "nic": nicRequest, "rdma": "{deviceClassName: rdma.dovetail.dev}",
	"part":      selected(migRequest, profile("2g.20gb", "")),
	"large":     selected(migRequest, profile("4g.40gb", "")),
	"share":     share("20Gi", 25),
	"timeslice": timeSlice("20Gi"),
}

// TestArrivals: Pods with pairs, GPUs, NICs, partitions and shares come and go as they
// like, more than there is room for. What is out never adds up to more than there is, and
// each Pod has what it was given.
func TestArrivals(t *testing.T) {
	const waves, perWave, seed = 2, 10, 20261129
	e := alone(t)
	random := rand.New(rand.NewPCG(seed, seed))
	names := make([]string, 0, len(arrivals))
	for name, body := range arrivals {
		e.apply(template(name, body))
		names = append(names, name)
	}
	slices.Sort(names)
	var pods []string
	for wave := range waves {
		for i := range perWave {
			pod := fmt.Sprintf("pod-%d-%d", wave, i)
			pods = append(pods, pod)
			e.pod(pod, on(node1), fromTemplate(names[random.IntN(len(names))]))
		}
		for _, pod := range e.settled(pods) {
			e.verify(pod)
		}
		e.counted(node1)
		random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		half := len(pods) / 2
		for _, pod := range pods[:half] {
			e.must(e.Kube.CoreV1().Pods(e.namespace).Delete(e.ctx, pod, metav1.DeleteOptions{}))
		}
		for _, pod := range pods[:half] {
			e.must(e.WaitGone(e.ctx, e.namespace, pod))
		}
		pods = pods[half:]
	}
}

// settled waits until each Pod runs, or is told that it must wait, and returns those that
// run.
func (e *env) settled(pods []string) []string {
	e.Helper()
	var running []string
	for _, pod := range pods {
		p, err := e.WaitPod(e.ctx, e.namespace, pod, "run, or to be told that it must wait", func(p *corev1.Pod) bool {
			return harness.Ready(p) || slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
			})
		})
		e.must(err)
		if harness.Ready(p) {
			running = append(running, pod)
		}
	}
	if len(running) == 0 {
		e.Error("no Pod runs")
	}
	return running
}

// counted: what is allocated of a node's pool takes no more of its counters, and of its
// shared devices' capacity, than there is.
func (e *env) counted(node string) {
	e.Helper()
	published, err := e.WaitSlices(e.ctx, node, "a whole pool", func([]*resourceapi.ResourceSlice) bool { return true })
	e.must(err)
	list, err := e.Kube.ResourceV1().ResourceClaims("").List(e.ctx, metav1.ListOptions{})
	e.must(err)
	there, devices := map[string]resource.Quantity{}, harness.Devices(published)
	for _, s := range published {
		for _, set := range s.Spec.SharedCounters {
			for name, counter := range set.Counters {
				there[set.Name+"/"+name] = counter.Value
			}
		}
	}
	out := map[string]bool{}
	take := func(what string, amount resource.Quantity) {
		left := there[what]
		left.Sub(amount)
		there[what] = left
		if left.Sign() < 0 {
			e.Errorf("of %s more is out than there is: %v are missing, with %v", what, left, out)
		}
	}
	for _, claim := range list.Items {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, r := range claim.Status.Allocation.Devices.Results {
			device := devices[r.Device]
			if r.Driver != harness.Driver || r.Pool != node {
				continue
			}
			for name, amount := range r.ConsumedCapacity {
				what := r.Device + "/" + string(name)
				if _, known := there[what]; !known {
					there[what] = device.Capacity[name].Value
				}
				take(what, amount)
			}
			if out[r.Device] {
				if r.ShareID == nil {
					e.Errorf("%s is allocated twice", r.Device)
				}
				continue // of a shared device the first takes the counters
			}
			out[r.Device] = true
			for _, set := range device.ConsumesCounters {
				for name, counter := range set.Counters {
					take(set.CounterSet+"/"+name, counter.Value)
				}
			}
		}
	}
	if len(out) == 0 {
		e.Error("nothing is allocated")
	}
}
