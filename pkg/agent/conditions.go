package agent

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Conditions of a device in ResourceClaim.status.devices.
const (
	// conditionReady: containers can have it.
	conditionReady = "Ready"
	// conditionMemoryEnforced of a share, or of a device whose processes MPS is to limit: no
	// container with it can have more memory than it was given. The reason is the level of
	// enforcement.
	conditionMemoryEnforced = "MemoryEnforced"
	// conditionLossless of a NIC: its port keeps the claim's RDMA traffic from being lost.
	conditionLossless = "Lossless"
)

// enforcements say what a level means.
var enforcements = map[machine.Enforcement]string{
	machine.EnforcementStrict:     "the driver limits what the processes of a container allocate together",
	machine.EnforcementBestEffort: "MPS limits processes that leave its limits alone; before protocol 3 each by itself, so that several together can have more",
	machine.EnforcementNone:       "nothing is limited: the memory is only counted when Pods are scheduled",
}

// told is what the claim's status says of one device.
type told struct {
	conditions []metav1.Condition
	// network is of a NIC's interface in the Pod; nil where there is none.
	network *resourceapi.NetworkDeviceData
}

// toldOf says how one of a claim's devices is after a preparation.
func toldOf(node string, c *resourceapi.ResourceClaim, result resourceapi.DeviceRequestAllocationResult, devices []claim.Device, err error) told {
	condition := func(kind string, holds bool, reason, message string) metav1.Condition {
		status := metav1.ConditionFalse
		if holds {
			status = metav1.ConditionTrue
		}
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: c.Generation}
	}
	if err != nil {
		return told{conditions: []metav1.Condition{condition(conditionReady, false, "PrepareFailed", cut(err.Error(), maxMessage))}}
	}
	t := told{conditions: []metav1.Condition{condition(conditionReady, true, "Prepared", "prepared on node "+node)}}
	share := string(ptr.Deref(result.ShareID, ""))
	i := slices.IndexFunc(devices, func(d claim.Device) bool { return d.Name == result.Device && d.ShareID == share })
	if i < 0 {
		return t
	}
	if e := devices[i].Enforcement; e != "" {
		t.conditions = append(t.conditions, condition(conditionMemoryEnforced, e == machine.EnforcementStrict, string(e), enforcements[e]))
	}
	if nic := devices[i].NIC; nic != nil {
		reason, message := flowControl(nic)
		t.conditions = append(t.conditions, condition(conditionLossless, nic.Lossless, reason, message))
		t.network = networkOf(nic)
	}
	return t
}

// flowControl is a NIC's priority flow control, as a condition's reason and message.
func flowControl(nic *claim.NIC) (reason, message string) {
	if len(nic.PFC) == 0 {
		return "NoFlowControl", "the port has no priority flow control: its traffic can be lost"
	}
	priorities := strings.Trim(strings.ReplaceAll(fmt.Sprint(nic.PFC), " ", ","), "[]")
	if !nic.Lossless {
		return "OtherPriorities", "the port has priority flow control on priorities " + priorities + ", but not for the claim's traffic class"
	}
	return "FlowControl", "the port has priority flow control on priorities " + priorities
}

// maxIPs is how many addresses the API takes of a device (k8s.io/api/resource/v1).
const maxIPs = 16

// networkOf tells of a NIC's interface in the Pod.
func networkOf(nic *claim.NIC) *resourceapi.NetworkDeviceData {
	if !nic.InPod {
		return nil
	}
	return &resourceapi.NetworkDeviceData{
		InterfaceName: nic.Interface, HardwareAddress: nic.MAC, IPs: nic.Addresses[:min(len(nic.Addresses), maxIPs)],
	}
}

// says says whether the claim says just this of a device already.
func says(c *resourceapi.ResourceClaim, result resourceapi.DeviceRequestAllocationResult, want told) bool {
	has := statusOf(c, result)
	if len(has.Conditions) != len(want.conditions) || !apiequality.Semantic.DeepEqual(has.NetworkData, want.network) {
		return false
	}
	for _, condition := range want.conditions {
		h := meta.FindStatusCondition(has.Conditions, condition.Type)
		if h == nil || h.Status != condition.Status || h.Reason != condition.Reason || h.Message != condition.Message {
			return false
		}
	}
	return true
}

// statusOf is what the claim says of a device; empty where it says nothing.
func statusOf(c *resourceapi.ResourceClaim, result resourceapi.DeviceRequestAllocationResult) resourceapi.AllocatedDeviceStatus {
	for _, d := range c.Status.Devices {
		if d.Driver == result.Driver && d.Pool == result.Pool && d.Device == result.Device &&
			ptr.Deref(d.ShareID, "") == string(ptr.Deref(result.ShareID, "")) {
			return d
		}
	}
	return resourceapi.AllocatedDeviceStatus{}
}

// applied is a condition with the time since which it has been so.
func applied(c *resourceapi.ResourceClaim, result resourceapi.DeviceRequestAllocationResult, condition metav1.Condition) *metaapply.ConditionApplyConfiguration {
	since := metav1.Now()
	if has := meta.FindStatusCondition(statusOf(c, result).Conditions, condition.Type); has != nil && has.Status == condition.Status {
		since = has.LastTransitionTime
	}
	return metaapply.Condition().WithType(condition.Type).WithStatus(condition.Status).WithReason(condition.Reason).
		WithMessage(condition.Message).WithLastTransitionTime(since).WithObservedGeneration(condition.ObservedGeneration)
}
