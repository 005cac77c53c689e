package e2e

import (
	"context"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// tolerable is how long a node may be without devices after its kubelet has come
// back. It takes under a second; this machine may be busy. With the helper's own
// delays it would be 30 s.
const tolerable = 5 * time.Second

// TestKubeletKilled: the kubelet deletes its node's slices when it starts.
func TestKubeletKilled(t *testing.T) {
	e := alone(t)
	e.apply(template("one", gpuRequest))
	e.pod("train", on(node1), fromTemplate("one"))
	e.verify("train")
	check := e.undisturbed("train")

	t.Logf("devices were gone for %v", e.restartKubelet(node1))
	// Now the slices are new, which is when the helper's cache delays most.
	t.Logf("devices were gone for %v when they were new", e.restartKubelet(node1))

	e.pod("next", on(node1), fromTemplate("one"))
	e.verify("next")
	e.verify("train")
	check()
}

// restartKubelet kills and starts a kubelet, and returns how long the node was
// without its devices.
func (e *env) restartKubelet(node string) time.Duration {
	e.Helper()
	slices, err := e.Kube.ResourceV1().ResourceSlices().Watch(e.ctx, metav1.ListOptions{
		FieldSelector: e.Slices(node).Fields.String(),
	})
	e.must(err)
	defer slices.Stop()
	ended := make(chan error, 1)
	go func() {
		_, err := e.Cluster.Run(e.ctx, "restart-kubelet", node, "--wait")
		ended <- err
	}()
	gone, err := e.outage(e.ctx, slices, machines[node].gpus)
	e.must(err)
	e.must(<-ended)
	if gone > tolerable {
		e.Errorf("%s was without devices for %v, want at most %v", node, gone, tolerable)
	}
	return gone
}

// outage is the time from the first slice's deletion to when all devices are back.
func (e *env) outage(ctx context.Context, events watch.Interface, devices int) (time.Duration, error) {
	var began time.Time
	there := map[string]*resourceapi.ResourceSlice{}
	for {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case event := <-events.ResultChan():
			slice, ok := event.Object.(*resourceapi.ResourceSlice)
			switch {
			case !ok:
				e.Fatalf("the watch ended: %v", event.Object)
			case event.Type == watch.Deleted:
				delete(there, slice.Name)
				if began.IsZero() {
					began = time.Now()
					clear(there)
				}
			default:
				there[slice.Name] = slice
			}
			var all []*resourceapi.ResourceSlice
			for _, s := range there {
				all = append(all, s)
			}
			if !began.IsZero() && len(harness.GPUs(all)) == devices && harness.Complete(all) {
				return time.Since(began), nil
			}
		}
	}
}
