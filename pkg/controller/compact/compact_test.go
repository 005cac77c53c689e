package compact

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func slicesOf(t *testing.T) []*resourceapi.ResourceSlice {
	t.Helper()
	var all []*resourceapi.ResourceSlice
	for i, content := range catalog.Build(simulatortest.Describe(t, "dgx-h100"), catalog.Options{}).Slices() {
		all = append(all, &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("s", i), UID: "u", ResourceVersion: "7", ManagedFields: make([]metav1.ManagedFieldsEntry, 1)},
			Spec:       resourceapi.ResourceSliceSpec{Driver: catalog.DriverName, Devices: content.Devices, SharedCounters: content.Counters},
		})
	}
	return all
}

// What is kept counts and excludes as the whole does, and is there once.
func TestSlices(t *testing.T) {
	var small Slices
	for _, whole := range slicesOf(t) {
		before := whole.DeepCopy()
		first, err := small.Transform(whole)
		if err != nil {
			t.Fatal(err)
		}
		second, err := small.Transform(whole.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(whole, before) {
			t.Fatal("the whole was changed")
		}
		a, b := first.(*resourceapi.ResourceSlice), second.(*resourceapi.ResourceSlice)
		if a.Name != whole.Name || a.UID != "u" || a.ResourceVersion != "7" || a.ManagedFields != nil {
			t.Errorf("metadata %+v", a.ObjectMeta)
		}
		if !reflect.DeepEqual(a.Spec.SharedCounters, whole.Spec.SharedCounters) || len(a.Spec.Devices) != len(whole.Spec.Devices) {
			t.Fatalf("slice %s: counters or devices are missing", whole.Name)
		}
		for i := range a.Spec.Devices {
			kept, d := &a.Spec.Devices[i], &whole.Spec.Devices[i]
			if kept.Name != d.Name || !reflect.DeepEqual(kept.ConsumesCounters, d.ConsumesCounters) ||
				!reflect.DeepEqual(kept.AllowMultipleAllocations, d.AllowMultipleAllocations) || len(kept.Taints) != len(d.Taints) {
				t.Errorf("device %s became %+v", d.Name, kept)
			}
			if _, ok := kept.Attributes["uuid"]; ok || kept.Attributes["type"].StringValue == nil {
				t.Errorf("device %s keeps %v", d.Name, kept.Attributes)
			}
			if string(AppendLook(nil, kept)) != string(AppendLook(nil, d)) {
				t.Errorf("device %s looks otherwise", d.Name)
			}
			if other := &b.Spec.Devices[i]; reflect.ValueOf(kept.Attributes).Pointer() != reflect.ValueOf(other.Attributes).Pointer() ||
				reflect.ValueOf(kept.Capacity).Pointer() != reflect.ValueOf(other.Capacity).Pointer() ||
				reflect.ValueOf(kept.ConsumesCounters).Pointer() != reflect.ValueOf(other.ConsumesCounters).Pointer() {
				t.Errorf("device %s is kept twice", d.Name)
			}
		}
	}
}

// Devices that differ in what a selector reads do not share.
func TestLook(t *testing.T) {
	text := func(s string) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{StringValue: &s} }
	number := func(n int64) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{IntValue: &n} }
	yes := true
	type attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	looks := map[string]string{}
	for name, d := range map[string]resourceapi.Device{
		"empty":      {},
		"gpu":        {Attributes: attributes{"type": text("gpu")}},
		"class":      {Attributes: attributes{"partitionClass": text("gpu")}},
		"quotes":     {Attributes: attributes{"type": text(`gpu","`)}},
		"two":        {Attributes: attributes{"type": text("gpu"), "partitionClass": text("")}},
		"number":     {Attributes: attributes{"nextSmallerMemory": number(1)}},
		"lossless":   {Attributes: attributes{"lossless": {BoolValue: &yes}}},
		"version":    {Attributes: attributes{"profile": {VersionValue: ptrTo("1.0.0")}}},
		"as text":    {Attributes: attributes{"profile": text("1.0.0")}},
		"memory":     {Capacity: capacity{"memory": {Value: resource.MustParse("1")}}},
		"more of it": {Capacity: capacity{"memory": {Value: resource.MustParse("2")}}},
	} {
		look := string(AppendLook(nil, &d))
		if other, ok := looks[look]; ok {
			t.Errorf("%s looks like %s: %s", name, other, look)
		}
		looks[look] = name
	}
}

func ptrTo(s string) *string { return &s }

func TestClaim(t *testing.T) {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "u", Labels: map[string]string{"a": "b"}}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{
		{Name: "one", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "small", Selectors: make([]resourceapi.DeviceSelector, 1)}},
		{Name: "either", FirstAvailable: []resourceapi.DeviceSubRequest{{Name: "x", DeviceClassName: "large", Count: 2}}},
	}
	if small := compacted(t, claim); small.Name != "c" || small.Namespace != "n" || small.UID != "u" || small.Labels != nil || small.Spec.Devices.Requests != nil {
		t.Errorf("without an allocation: %+v", small)
	}
	theirs := resourceapi.DeviceRequestAllocationResult{Driver: "gpu.example.com", Request: "one", Pool: "p", Device: "d"}
	ours := theirs
	ours.Driver = catalog.DriverName
	ours.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("1Gi")}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{theirs}}}
	if small := compacted(t, claim); small.Status.Allocation != nil {
		t.Errorf("with another driver's device: %+v", small)
	}
	claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, ours)
	small := compacted(t, claim)
	want := []resourceapi.DeviceRequest{
		{Name: "one", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "small"}},
		{Name: "either", FirstAvailable: []resourceapi.DeviceSubRequest{{Name: "x", DeviceClassName: "large"}}},
	}
	if !reflect.DeepEqual(small.Spec.Devices.Requests, want) || !reflect.DeepEqual(small.Status.Allocation.Devices.Results, []resourceapi.DeviceRequestAllocationResult{ours}) {
		t.Errorf("%+v", small)
	}
}

func compacted(t *testing.T, claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	t.Helper()
	small, err := Claim(claim)
	if err != nil {
		t.Fatal(err)
	}
	return small.(*resourceapi.ResourceClaim)
}

func TestOtherObjects(t *testing.T) {
	pod := &corev1.Pod{}
	var small Slices
	for name, transform := range map[string]func(any) (any, error){"slices": small.Transform, "claims": Claim} {
		if same, err := transform(pod); same != any(pod) || err != nil {
			t.Errorf("%s: %v, %v", name, same, err)
		}
	}
}

// Values that nobody has any more do not stay for ever.
func TestSharedIsBounded(t *testing.T) {
	var s shared[string]
	for i := range maxShared + 10 {
		key := fmt.Sprint(i)
		if got := s.of(key, func() string { return strings.Clone(key) }); got != key {
			t.Fatal(got)
		}
	}
	if len(s.values) > maxShared {
		t.Errorf("%d values", len(s.values))
	}
}
