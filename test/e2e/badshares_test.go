package e2e

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestBadShares: what a share cannot be is refused, with what would work.
func TestBadShares(t *testing.T) {
	tests := []struct {
		name, body, fields string
		words              []string
	}{
		{"no memory", share("0", 5), "enforcement: BestEffort", []string{"capacity.requests[memory]: 0 is too little", "the nearest that works is 1Mi"}},
		{"unknown interval", timeSlice("1Gi"), "sharing: {timeSlicing: {interval: Tiny}}",
			[]string{"sharing.timeSlicing.interval", `"Tiny"`, `"Short"`}},
		{"compute mode", share("1Gi", 5), "computeMode: ExclusiveProcess", []string{"computeMode", "claim a whole GPU"}},
		{"MPS of a time slice", timeSlice("1Gi"), "sharing: {strategy: MPS}", []string{"sharing.strategy", "timeslice", "claim a device of the other kind"}},
		{"limits of MPS of a time slice", timeSlice("1Gi"), "sharing: {mps: {memoryLimit: 1Gi}}", []string{"sharing.mps", "request memory"}},
		{"limits beside the share's", share("1Gi", 5), "sharing: {mps: {activeThreadPercentage: 50}}", []string{"sharing.mps", "request memory and compute"}},
		{"percentage", gpuRequest, "sharing: {strategy: MPS, mps: {activeThreadPercentage: 101}}",
			[]string{"sharing.mps.activeThreadPercentage", "101", "nearest is 100"}},
		{"Strict where nothing enforces", timeSlice("1Gi"), "enforcement: Strict", []string{"enforcement: Strict", "the nearest that works is None"}},
		{"Strict where processes are limited", share("1Gi", 5), "enforcement: Strict", []string{"enforcement: Strict", "570.", "the nearest that works is BestEffort"}},
	}
	var all []claimTest
	for _, test := range tests {
		all = append(all, refused(test.name, configuredShare("bad", test.body, test.fields), test.words...))
	}
	for name, body := range map[string]string{
		"more memory than any GPU has": share("200Gi", 5),
		"more than all of a GPU":       share("1Gi", 101),
	} {
		all = append(all, claimTest{name, template("bad", body), func(e *env) {
			e.pod("train", fromTemplate("bad"))
			e.event("train", "FailedScheduling", "cannot allocate all claims")
		}})
	}
	sideBySide(t, unchecked, all)
}

// TestLocked: a claim cannot set what its DeviceClass has locked.
func TestLocked(t *testing.T) {
	t.Cleanup(func() { agree(t) })
	e := start(t, unchecked)
	class := &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace},
		Spec: resourceapi.DeviceClassSpec{
			Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
				Expression: `device.driver == "dovetail.dev" && device.attributes["dovetail.dev"].type == "timeslice"`,
			}}},
			Config: []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
				Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: "dovetail.dev", Parameters: runtime.RawExtension{Raw: []byte(
					`{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig","sharing":{"timeSlicing":{"interval":"Long"}},"locked":["sharing"]}`,
				)}},
			}}},
		},
	}
	classes := e.Kube.ResourceV1().DeviceClasses()
	_, err := classes.Create(e.ctx, class, metav1.CreateOptions{})
	e.must(err)
	e.afterwards(func() { e.must(classes.Delete(e.ctx, class.Name, metav1.DeleteOptions{})) })
	body := fmt.Sprintf("{deviceClassName: %s}", class.Name)
	e.apply(configuredShare("own", body, "sharing: {timeSlicing: {interval: Short}}"))
	e.apply(configuredShare("else", body, "enforcement: None"))
	e.pod("own", on(node1), fromTemplate("own"))
	e.prepareFailed("own", "sharing", "the DeviceClass has locked it")
	e.pod("else", on(node1), fromTemplate("else"))
	e.verify("else")
	agree(t)
}
