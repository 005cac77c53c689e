package agent

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
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
	// conditionMemoryEnforced of a share: no container with it can have more memory
	// than it was given. The reason is the level of enforcement.
	conditionMemoryEnforced = "MemoryEnforced"
)

// enforcements say what a level means.
var enforcements = map[machine.Enforcement]string{
	machine.EnforcementStrict:     "what the processes of a container allocate together is limited",
	machine.EnforcementBestEffort: "each process is limited by itself; several together can have more",
	machine.EnforcementNone:       "nothing is limited: the memory is only counted when Pods are scheduled",
}

// conditionsOf says how one of a claim's devices is after a preparation.
func conditionsOf(node string, c *resourceapi.ResourceClaim, result resourceapi.DeviceRequestAllocationResult, devices []claim.Device, err error) []metav1.Condition {
	ready := metav1.Condition{
		Type: conditionReady, Status: metav1.ConditionTrue, Reason: "Prepared",
		Message: "prepared on node " + node, ObservedGeneration: c.Generation,
	}
	if err != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "PrepareFailed", cut(err.Error(), maxMessage)
		return []metav1.Condition{ready}
	}
	share := string(ptr.Deref(result.ShareID, ""))
	i := slices.IndexFunc(devices, func(d claim.Device) bool { return d.Name == result.Device && d.ShareID == share })
	if i < 0 || devices[i].Enforcement == "" {
		return []metav1.Condition{ready}
	}
	enforced := metav1.Condition{
		Type: conditionMemoryEnforced, Status: metav1.ConditionFalse, Reason: string(devices[i].Enforcement),
		Message: enforcements[devices[i].Enforcement], ObservedGeneration: c.Generation,
	}
	if devices[i].Enforcement == machine.EnforcementStrict {
		enforced.Status = metav1.ConditionTrue
	}
	return []metav1.Condition{ready, enforced}
}

// says says whether a device of the claim has just these conditions already.
func says(c *resourceapi.ResourceClaim, result resourceapi.DeviceRequestAllocationResult, want []metav1.Condition) bool {
	has := statusOf(c, result)
	if len(has) != len(want) {
		return false
	}
	for _, condition := range want {
		h := meta.FindStatusCondition(has, condition.Type)
		if h == nil || h.Status != condition.Status || h.Reason != condition.Reason || h.Message != condition.Message {
			return false
		}
	}
	return true
}

// statusOf are a device's conditions as the claim has them.
func statusOf(c *resourceapi.ResourceClaim, result resourceapi.DeviceRequestAllocationResult) []metav1.Condition {
	for _, d := range c.Status.Devices {
		if d.Driver == result.Driver && d.Pool == result.Pool && d.Device == result.Device &&
			ptr.Deref(d.ShareID, "") == string(ptr.Deref(result.ShareID, "")) {
			return d.Conditions
		}
	}
	return nil
}

// applied is a condition with the time since which it has been so.
func applied(c *resourceapi.ResourceClaim, result resourceapi.DeviceRequestAllocationResult, condition metav1.Condition) *metaapply.ConditionApplyConfiguration {
	since := metav1.Now()
	if has := meta.FindStatusCondition(statusOf(c, result), condition.Type); has != nil && has.Status == condition.Status {
		since = has.LastTransitionTime
	}
	return metaapply.Condition().WithType(condition.Type).WithStatus(condition.Status).WithReason(condition.Reason).
		WithMessage(condition.Message).WithLastTransitionTime(since).WithObservedGeneration(condition.ObservedGeneration)
}
