// Package classwatch follows the PartitionClasses of a cluster and the labels of one of
// its nodes, which is all that a node must know to publish what is asked for.
package classwatch

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

// Known is what a Watch knows.
type Known struct {
	// Classes by name, with name and spec alone. They must not be changed.
	Classes []v1alpha1.PartitionClass `json:"classes"`
	// NodeLabels likewise.
	NodeLabels map[string]string `json:"nodeLabels"`
}

// Watch follows classes and node.
type Watch struct {
	classes *set[*v1alpha1.PartitionClassSpec]
	labels  *set[map[string]string]
	follow  []follower
}

// New returns a Watch that has not begun. classes lists and watches PartitionClasses,
// node the one Node. changed is called when something has become known, or is no longer
// as it was; it must not wait.
func New(classes, node cache.ListerWatcher, changed func()) *Watch {
	w := &Watch{
		classes: &set[*v1alpha1.PartitionClassSpec]{
			changed: changed,
			same:    func(a, b *v1alpha1.PartitionClassSpec) bool { return equality.Semantic.DeepEqual(a, b) },
			trim: func(object any) (string, *v1alpha1.PartitionClassSpec) {
				class := object.(*v1alpha1.PartitionClass)
				return class.Name, &class.Spec
			},
		},
		labels: &set[map[string]string]{
			changed: changed,
			same:    maps.Equal[map[string]string, map[string]string],
			trim: func(object any) (string, map[string]string) {
				node := object.(*corev1.Node)
				return node.Name, node.Labels
			},
		},
	}
	w.follow = []follower{
		{what: "PartitionClasses", source: classes, object: &v1alpha1.PartitionClass{}, into: w.classes},
		{what: "the labels of this node", source: node, object: &corev1.Node{}, into: w.labels},
	}
	return w
}

// Run follows until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range w.follow {
		all.Go(func() { w.follow[i].run(ctx) })
	}
	all.Wait()
}

// Known returns what is known; false as long as that is nothing.
func (w *Watch) Known() (Known, bool) {
	specs, ok := w.classes.get()
	labels, also := w.labels.get()
	if !ok || !also {
		return Known{}, false
	}
	known := Known{Classes: []v1alpha1.PartitionClass{}}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		known.Classes = append(known.Classes, v1alpha1.PartitionClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *specs[name]})
	}
	for _, l := range labels { // of the one node
		known.NodeLabels = l
	}
	return known, true
}
