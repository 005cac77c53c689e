package agent

import (
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

// classSource is the API server's PartitionClasses.
type classSource struct {
	*cachetesting.FakeControllerSource
}

func newClassSource() *classSource {
	return &classSource{cachetesting.NewFakeControllerSource()}
}

func (*classSource) IsWatchListSemanticsUnSupported() bool { return true }

func partitions(name, profile string) *v1alpha1.PartitionClass {
	return &v1alpha1.PartitionClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.PartitionClassSpec{Shape: v1alpha1.Shape{MIG: &v1alpha1.MIGShape{Profile: profile}}},
	}
}

// published waits until the slices of the newest generation, which it returns, have the
// right devices.
func (r *running) published(what string, right func(devices map[string]resourceapi.Device) bool) (newest int64) {
	r.t.Helper()
	watch, err := r.kube.ResourceV1().ResourceSlices().Watch(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer watch.Stop()
	for late := time.After(patiencetest.Limit); ; {
		list, err := r.kube.ResourceV1().ResourceSlices().List(r.t.Context(), metav1.ListOptions{})
		if err != nil {
			r.t.Fatal(err)
		}
		devices := map[string]resourceapi.Device{}
		for i := range list.Items {
			newest = max(newest, list.Items[i].Spec.Pool.Generation)
		}
		for i := range list.Items {
			if spec := &list.Items[i].Spec; spec.Pool.Generation == newest {
				for _, d := range spec.Devices {
					devices[d.Name] = d
				}
			}
		}
		if right(devices) {
			return newest
		}
		select {
		case <-watch.ResultChan():
		case <-late:
			r.t.Fatalf("%s: does not come about; published are %d devices", what, len(devices))
		}
	}
}

// offersPartitions says whether the partitions that new claims can get are those of one
// profile; leaving ones do not count.
func offersPartitions(devices map[string]resourceapi.Device, profile string) bool {
	count := 0
	for _, d := range devices {
		if p, ok := d.Attributes["profile"]; ok && len(d.Taints) == 0 {
			if *p.StringValue != profile {
				return false
			}
			count++
		}
	}
	return count > 0
}

// From a class that comes to one that goes: what is published follows, in few writes,
// and claims of before are prepared.
func TestClassesAreFollowed(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	before := r.published("without classes", allPartitions)
	r.classes.Add(partitions("third", "3g.40gb"))
	r.classes.Add(&v1alpha1.PartitionClass{
		ObjectMeta: metav1.ObjectMeta{Name: "turn"},
		Spec:       v1alpha1.PartitionClassSpec{Shape: v1alpha1.Shape{TimeSlice: &v1alpha1.TimeSliceShape{Clients: 4}}},
	})
	after := r.published("two classes", func(devices map[string]resourceapi.Device) bool {
		_, sized := devices["timeslice-1b-00-turn"]
		return sized && offersPartitions(devices, "3g.40gb")
	})
	// On a slow machine the classes may come one after the other.
	if times := after - before; times > 2 {
		t.Errorf("published %d times for two classes", times)
	}
	counted := partitions("third", "3g.40gb")
	counted.Status.Allocated = 3
	r.classes.Modify(counted) // which is no change

	// A claim of a device that is not asked for, as it was given it just before.
	early := r.create("early", "", "mig-1b-00-1g10gb-4")
	if response, err := r.prepare(early); err != nil || response.Error != "" {
		t.Fatalf("prepare: %v, %v", response, err)
	}
	r.classes.Modify(partitions("third", "7g.80gb"))
	r.published("another profile", func(devices map[string]resourceapi.Device) bool {
		held, there := devices["mig-1b-00-1g10gb-4"]
		return offersPartitions(devices, "7g.80gb") && there && len(held.Taints) == 1
	})
	late := r.create("late", "", "mig-43-00-3g40gb-0")
	if response, err := r.prepare(late); err != nil || response.Error != "" {
		t.Fatalf("prepare: %v, %v", response, err)
	}
	r.unprepare(early)
	r.unprepare(late)
	r.classes.Delete(partitions("third", "7g.80gb"))
	r.published("no class for partitions", allPartitions)
}

// allPartitions says whether new claims can get every partition that there is, and all
// slices are written: monitors are in the last.
func allPartitions(devices map[string]resourceapi.Device) bool {
	count, monitors := 0, 0
	for name, d := range devices {
		switch {
		case strings.HasPrefix(name, "mig-") && len(d.Taints) == 0:
			count++
		case strings.HasPrefix(name, "monitor-"):
			monitors++
		}
	}
	return count == 8*25 && monitors == 8
}
