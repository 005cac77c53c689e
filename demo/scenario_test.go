package main

import (
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestScenarios: each file is valid, says on top in a few words what it is about,
// and has a Pod that can tell what it holds.
func TestScenarios(t *testing.T) {
	scenarios, err := read("scenarios")
	if err != nil {
		t.Fatal(err)
	}
	if len(scenarios) == 0 {
		t.Fatal("no scenarios")
	}
	for i, s := range scenarios {
		if number(s.file) != i+1 {
			t.Errorf("%s comes as number %d", s.file, i+1)
		}
		t.Run(s.name(), func(t *testing.T) {
			if n := len(s.asked()); n < 1 || n > 4 {
				t.Errorf("%d lines of comment on top, want 1 to 4", n)
			}
			for _, line := range s.asked() {
				if len(line) > width-10 {
					t.Errorf("too long to show: %s", line)
				}
			}
			objects, err := harness.Objects(s.manifest)
			if err != nil {
				t.Fatal(err)
			}
			pods := 0
			for _, o := range objects {
				var containers []corev1.Container
				switch o := o.(type) {
				case *corev1.Pod:
					containers = o.Spec.Containers
				case *appsv1.Deployment:
					containers = o.Spec.Template.Spec.Containers
				default:
					continue
				}
				pods++
				if len(containers) != 1 || !slices.Equal(containers[0].Args, []string{"-words"}) && !harness.UsesCUDA(containers[0]) {
					t.Errorf("a Pod does not tell what it holds: %+v", containers)
				}
			}
			if pods == 0 {
				t.Error("no Pod")
			}
		})
	}
}

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		line string
		want int // lines
	}{
		{"", 1}, {"short", 1}, {"just as long as it may", 1}, {"a line that is too long for one", 2},
		{"one-word-that-is-longer-than-the-width-and-cannot-be-broken", 1},
	} {
		if got := wrap(test.line, 22); len(got) != test.want {
			t.Errorf("wrap(%q) gives %q, want %d lines", test.line, got, test.want)
		}
	}
}

func TestWhat(t *testing.T) {
	text := func(s string) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{StringValue: &s} }
	gpu := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"productName": text("NVIDIA H100")}
	nic := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": text("MT4129"), "speed": {IntValue: ptr.To[int64](400)}}
	pair := maps.Clone(gpu)
	maps.Copy(pair, nic)
	pair["closeness"] = text("PIX")
	memory := map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}}
	for _, test := range []struct {
		device resourceapi.Device
		want   string
	}{
		{resourceapi.Device{Attributes: gpu, Capacity: memory}, "NVIDIA H100, 80 GiB"},
		{resourceapi.Device{Attributes: nic}, "NIC MT4129, 400 Gb/s"},
		{resourceapi.Device{Attributes: pair, Capacity: memory}, "NVIDIA H100, 80 GiB and NIC MT4129, 400 Gb/s, PIX"},
	} {
		if got := what(test.device); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
