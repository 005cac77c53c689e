package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/dovetail-dra/dovetail/test/bench/stats"
	"github.com/dovetail-dra/dovetail/test/harness"
)

const (
	// settling is left after a start, before an idle minute begins.
	settling = 5 * time.Second
	idle     = time.Minute
	// afterRestart is left for more changes of the slices after a restart.
	afterRestart = 3 * time.Second
	nodePort     = "18080"
)

// kubelet has the node's real kubelet, and the agent on that node: an idle minute,
// and two restarts of the kubelet, when the slices are older than that minute and
// when they were just made.
func (b *bench) kubelet(ctx context.Context) (tables []table, err error) {
	launcher, address, err := b.onNode(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = join(err, launcher.stop()) }()
	pid, err := childOf(launcher.pid())
	if err != nil {
		return nil, err
	}
	if err := harness.Pass(ctx, settling); err != nil {
		return nil, err
	}
	quiet, err := idleMinute(ctx, pid, address)
	if err != nil {
		return nil, err
	}
	t := table{
		title: "The real kubelet restarted",
		made: "`bin/bench -only kubelet`: the agent on the cluster's node, the kubelet killed and started again. From the watch event with which " +
			"the kubelet takes away the first slice to the one with which the pool is complete again.",
		columns: []string{"Slices", "Time without", "Target", "NVIDIA"},
	}
	for _, age := range []struct{ name, nvidia string }{{"older than a minute", "30.0 s"}, {"just made", "53 s (7 s old)"}} {
		gone, err := b.withoutSlices(ctx)
		if err != nil {
			return nil, err
		}
		t.add(age.name, stats.Milliseconds(gone), "< 1 s", age.nvidia)
	}
	return []table{quiet, t}, nil
}

// onNode starts an agent on the node, where the real kubelet finds it. What it
// returns is the launcher's process; the agent is its child.
func (b *bench) onNode(ctx context.Context) (p *program, address string, err error) {
	m, err := b.machine("dgx-h100")
	if err != nil {
		return nil, "", err
	}
	n, err := b.Kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			address = net.JoinHostPort(a.Address, nodePort)
		}
	}
	if err := b.unpublish(ctx); err != nil {
		return nil, "", err
	}
	p, err = start(filepath.Join(b.disk, "node.log"), append([]string{
		b.Path, "--name", b.Name, "exec", node, b.node, "run", "--kubeconfig", b.kubeconfig, "--node-name", node,
		"--http-address", ":" + nodePort, "--cdi-hook", b.hook, "--hook", b.hook,
	}, rootFlags(m.Root())...)...)
	if err != nil {
		return nil, "", err
	}
	if _, err := b.published(ctx); err != nil {
		return nil, "", join(err, p.stop())
	}
	return p, address, nil
}

func idleMinute(ctx context.Context, pid int, address string) (t table, err error) {
	t = table{
		title: "A minute of idling on a DGX H100",
		made: "`bin/bench -only kubelet`: registered with the real kubelet, which listens to its health reports. Writes are its own count of " +
			"requests to the API server other than GET.",
		columns: []string{"What", "Dovetail", "Target", "NVIDIA"},
	}
	wroteBefore, err := writes(ctx, address)
	if err != nil {
		return t, err
	}
	tookBefore, err := cpuOf(pid)
	if err != nil {
		return t, err
	}
	if err := harness.Pass(ctx, idle); err != nil {
		return t, err
	}
	took, err := cpuOf(pid)
	if err != nil {
		return t, err
	}
	wrote, err := writes(ctx, address)
	if err != nil {
		return t, err
	}
	m, err := memoryOf(pid)
	if err != nil {
		return t, err
	}
	t.add("API writes", fmt.Sprintf("%.0f", wrote-wroteBefore), "0", "0")
	t.add("processor time", fmt.Sprintf("%.2f s", (took-tookBefore).Seconds()), "", "0.01 s")
	t.add("resident after it (anonymous)", strings.Join(m.cells(), " (")+")", "≤ 50 MB", "71.4 MB")
	return t, nil
}

// withoutSlices restarts the kubelet and returns for how long the pool was not whole.
func (b *bench) withoutSlices(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	selector := b.Slices(node).Fields.AsSelector().String()
	api := b.Kube.ResourceV1().ResourceSlices()
	list, err := api.List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return 0, err
	}
	events, err := api.Watch(ctx, metav1.ListOptions{FieldSelector: selector, ResourceVersion: list.ResourceVersion})
	if err != nil {
		return 0, err
	}
	defer events.Stop()
	restarted := make(chan error, 1)
	go func() {
		_, err := b.Run(ctx, "restart-kubelet", node, "--wait")
		if err == nil {
			err = harness.Pass(ctx, afterRestart)
		}
		restarted <- err
	}()
	p := pool{slices: map[types.UID]*resourceapi.ResourceSlice{}}
	for i := range list.Items {
		p.slices[list.Items[i].UID] = &list.Items[i]
	}
	for {
		select {
		case e, ok := <-events.ResultChan():
			slice, isSlice := e.Object.(*resourceapi.ResourceSlice)
			if !ok || !isSlice {
				return 0, fmt.Errorf("the watch of slices ended: %v", e.Object)
			}
			p.see(e.Type, slice, time.Now())
		case err := <-restarted:
			switch {
			case err != nil:
				return 0, err
			case p.broken.IsZero():
				return 0, fmt.Errorf("the kubelet took no slice away")
			case p.whole.Before(p.broken):
				return 0, fmt.Errorf("the slices did not come back within %v of the node's readiness", afterRestart)
			}
			return p.whole.Sub(p.broken), nil
		}
	}
}

// pool follows a node's slices.
type pool struct {
	slices map[types.UID]*resourceapi.ResourceSlice
	// broken is when it first was not whole, whole when it last became so.
	broken, whole time.Time
}

func (p *pool) see(kind watch.EventType, s *resourceapi.ResourceSlice, now time.Time) {
	was := p.complete()
	if kind == watch.Deleted {
		delete(p.slices, s.UID)
	} else {
		p.slices[s.UID] = s
	}
	switch is := p.complete(); {
	case was && !is && p.broken.IsZero():
		p.broken = now
	case !was && is:
		p.whole = now
	}
}

// complete says whether the scheduler would use the pool.
func (p *pool) complete() bool {
	var newest int64
	for _, s := range p.slices {
		newest = max(newest, s.Spec.Pool.Generation)
	}
	count, want := int64(0), int64(-1)
	for _, s := range p.slices {
		if s.Spec.Pool.Generation == newest {
			count, want = count+1, s.Spec.Pool.ResourceSliceCount
		}
	}
	return count == want
}
