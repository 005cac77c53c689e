package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func allocated(results ...resourceapi.DeviceRequestAllocationResult) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train", UID: "0b7c"},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{
			Devices: resourceapi.DeviceAllocationResult{Results: results},
		}},
	}
}

func ours(device string) resourceapi.DeviceRequestAllocationResult {
	return resourceapi.DeviceRequestAllocationResult{Request: "gpu", Driver: "dovetail.dev", Pool: "node-1", Device: device}
}

// write reports and processes one status, and returns the claim as it is then, and
// how many writes there were.
func write(t *testing.T, c *resourceapi.ResourceClaim, err error) (*resourceapi.ResourceClaim, int) {
	t.Helper()
	kube := fake.NewClientset(c)
	w := newStatusWriter(kube, "node-1")
	w.delay = 0
	w.Report(c, nil, err)
	for w.queue.Len() > 0 {
		uid, _ := w.queue.Get()
		w.process(t.Context(), uid)
		w.queue.Done(uid)
	}
	if len(w.pending) > 0 {
		t.Errorf("still pending: %v", w.pending)
	}
	writes := 0
	for _, a := range kube.Actions() {
		if a.GetVerb() == "patch" && a.GetSubresource() == "status" {
			writes++
		}
	}
	got, getErr := kube.ResourceV1().ResourceClaims(c.Namespace).Get(context.Background(), c.Name, metav1.GetOptions{})
	if getErr != nil {
		t.Fatal(getErr)
	}
	return got, writes
}

func TestStatusSaysHowDevicesAre(t *testing.T) {
	foreign := resourceapi.DeviceRequestAllocationResult{Request: "nic", Driver: "nic.example.com", Pool: "p", Device: "d"}
	twice := ours("gpu-1b-00")
	twice.Request, twice.AdminAccess = "again", ptr.To(true)
	c, writes := write(t, allocated(ours("gpu-1b-00"), foreign, ours("gpu-43-00"), twice), nil)
	if writes != 1 || len(c.Status.Devices) != 2 {
		t.Fatalf("%d writes, devices %+v", writes, c.Status.Devices)
	}
	for _, d := range c.Status.Devices {
		if len(d.Conditions) != 1 || d.Conditions[0].Type != "Ready" || d.Conditions[0].Status != metav1.ConditionTrue || d.Conditions[0].Reason != "Prepared" {
			t.Errorf("conditions of %s: %+v", d.Device, d.Conditions)
		}
	}

	c, writes = write(t, c, nil)
	if writes != 0 {
		t.Error("the same was written again")
	}

	c, writes = write(t, c, errors.New("GPU is busy"))
	if got := c.Status.Devices[0].Conditions[0]; writes != 1 || got.Status != metav1.ConditionFalse || got.Reason != "PrepareFailed" || got.Message != "GPU is busy" {
		t.Errorf("%d writes, condition %+v", writes, got)
	}
}

func TestOnlyNewsIsNews(t *testing.T) {
	c, _ := write(t, allocated(ours("gpu-1b-00")), errors.New("GPU is busy"))
	w := newStatusWriter(fake.NewClientset(c), "node-1")
	if w.Report(c, nil, errors.New("GPU is busy")) {
		t.Error("the same again is no news")
	}
	if !w.Report(c, nil, errors.New("GPU is lost")) {
		t.Error("another error is news")
	}
	if !w.Report(c, nil, nil) {
		t.Error("success is news")
	}
}

func TestNothingIsWrittenForOthers(t *testing.T) {
	if _, writes := write(t, allocated(resourceapi.DeviceRequestAllocationResult{Request: "nic", Driver: "nic.example.com", Pool: "p", Device: "d"}), nil); writes != 0 {
		t.Errorf("%d writes", writes)
	}
}

func TestAReleasedClaimIsForgotten(t *testing.T) {
	c := allocated(ours("gpu-1b-00"))
	kube := fake.NewClientset(c)
	w := newStatusWriter(kube, "node-1")
	w.delay = 0
	w.Report(c, nil, nil)
	w.Forget(c.UID)
	w.process(t.Context(), c.UID)
	if len(kube.Actions()) > 0 {
		t.Errorf("actions %v", kube.Actions())
	}
}

func TestStatusSaysHowMemoryIsEnforced(t *testing.T) {
	share := ours("mps-1b-00")
	share.ShareID = ptr.To[types.UID]("share-1")
	other := ours("mps-1b-00")
	other.ShareID = ptr.To[types.UID]("share-2")
	c := allocated(share, other, ours("gpu-43-00"))
	devices := []claim.Device{
		{Name: "mps-1b-00", ShareID: "share-1", Enforcement: machine.EnforcementStrict},
		{Name: "mps-1b-00", ShareID: "share-2", Enforcement: machine.EnforcementBestEffort},
		{Name: "gpu-43-00"},
	}
	for i, want := range []struct {
		status metav1.ConditionStatus
		reason string
	}{{metav1.ConditionTrue, "Strict"}, {metav1.ConditionFalse, "BestEffort"}, {}} {
		conditions := toldOf("node-1", c, own(c)[i], devices, nil).conditions
		got := meta.FindStatusCondition(conditions, "MemoryEnforced")
		switch {
		case want.reason == "" && got != nil, want.reason != "" && (got == nil || got.Status != want.status || got.Reason != want.reason || got.Message == ""):
			t.Errorf("device %d: %+v, want %+v", i, got, want)
		}
	}
}

func TestStatusTellsOfNICs(t *testing.T) {
	moved := claim.NIC{InPod: true, Interface: "rail0", MAC: "b8:3f:d2:00:00:01", Addresses: []string{"10.1.0.7/16"}, RDMA: "mlx5_0", Lossless: true, PFC: []int{3, 4}}
	lossy, stays := moved, moved
	lossy.Lossless = false
	stays.InPod, stays.Lossless, stays.PFC = false, false, nil
	c := allocated(ours("nic-18-00"), ours("nic-40-00"), ours("rdma-4f-00"))
	devices := []claim.Device{{Name: "nic-18-00", NIC: &moved}, {Name: "nic-40-00", NIC: &lossy}, {Name: "rdma-4f-00", NIC: &stays}}
	for i, want := range []struct {
		status  metav1.ConditionStatus
		message string
		inPod   bool
	}{
		{metav1.ConditionTrue, "on priorities 3,4", true},
		{metav1.ConditionFalse, "on priorities 3,4, but not for the claim's traffic class", true},
		{metav1.ConditionFalse, "can be lost", false},
	} {
		got := toldOf("node-1", c, own(c)[i], devices, nil)
		lossless := meta.FindStatusCondition(got.conditions, "Lossless")
		if lossless == nil || lossless.Status != want.status || !strings.HasSuffix(lossless.Message, want.message) {
			t.Errorf("device %d: %+v, want %+v", i, lossless, want)
		}
		if (got.network != nil) != want.inPod || want.inPod && (got.network.InterfaceName != "rail0" || got.network.HardwareAddress != moved.MAC || len(got.network.IPs) != 1) {
			t.Errorf("device %d: network data %+v", i, got.network)
		}
	}

	kube := fake.NewClientset(c)
	w := newStatusWriter(kube, "node-1")
	if !w.Report(c, devices, nil) {
		t.Error("no news")
	}
	if err := w.write(t.Context(), w.pending[c.UID]); err != nil {
		t.Fatal(err)
	}
	written, err := kube.ResourceV1().ResourceClaims(c.Namespace).Get(t.Context(), c.Name, metav1.GetOptions{})
	if err != nil || written.Status.Devices[0].NetworkData == nil || written.Status.Devices[2].NetworkData != nil {
		t.Fatalf("%+v, %v", written.Status.Devices, err)
	}
	if w.Report(written, devices, nil) {
		t.Error("the same is news")
	}
	devices[0].NIC.Interface = "rail1"
	if !w.Report(written, devices, nil) {
		t.Error("another name is no news")
	}
}
