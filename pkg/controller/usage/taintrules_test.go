package usage

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func taintRule(name string, selector *resourceapi.DeviceTaintSelector, effect resourceapi.DeviceTaintEffect) *resourceapi.DeviceTaintRule {
	return &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourceapi.DeviceTaintRuleSpec{DeviceSelector: selector, Taint: resourceapi.DeviceTaint{Key: "example.com/repair", Effect: effect}},
	}
}

// What an administrator's rule taints is not free, as what its node's agent does.
func TestRuledOutIsNotFree(t *testing.T) {
	const ours, pool, gpu = "dovetail.dev", "dgx-h100", "gpu-1b-00"
	type selector = resourceapi.DeviceTaintSelector
	c := newCluster(t, pool, "mixed")
	before := c.count(t, "whole")
	for name, test := range map[string]struct {
		selector *selector
		effect   resourceapi.DeviceTaintEffect
		fewer    int
	}{
		"one device":             {&selector{Driver: ptr.To(ours), Pool: ptr.To(pool), Device: ptr.To(gpu)}, resourceapi.DeviceTaintEffectNoSchedule, 1},
		"with its Pods":          {&selector{Pool: ptr.To(pool), Device: ptr.To(gpu)}, resourceapi.DeviceTaintEffectNoExecute, 1},
		"a node":                 {&selector{Pool: ptr.To(pool)}, resourceapi.DeviceTaintEffectNoSchedule, 8},
		"a driver":               {&selector{Driver: ptr.To(ours)}, resourceapi.DeviceTaintEffectNoSchedule, before.Free},
		"all there is":           {&selector{}, resourceapi.DeviceTaintEffectNoSchedule, before.Free},
		"nothing":                {nil, resourceapi.DeviceTaintEffectNoSchedule, 0},
		"only to see what would": {&selector{}, resourceapi.DeviceTaintEffectNone, 0},
		"another driver":         {&selector{Driver: ptr.To("gpu.example.com")}, resourceapi.DeviceTaintEffectNoSchedule, 0},
		"a node that is not":     {&selector{Pool: ptr.To("elsewhere")}, resourceapi.DeviceTaintEffectNoSchedule, 0},
	} {
		t.Run(name, func(t *testing.T) {
			rule := taintRule("repair", test.selector, test.effect)
			news := test.selector != nil && test.effect != resourceapi.DeviceTaintEffectNone && ptr.Deref(test.selector.Driver, ours) == ours
			if c.SetTaintRule(rule) != news {
				t.Errorf("it is news: %t", !news)
			}
			if got := c.count(t, "whole"); before.Free-got.Free != test.fewer || got.Devices != before.Devices || got.Nodes != before.Nodes {
				t.Errorf("%+v, before %+v", got, before)
			}
			rule = rule.DeepCopy()
			rule.Status.Conditions = []metav1.Condition{{Type: "EvictionInProgress"}}
			if c.SetTaintRule(rule) {
				t.Error("a status is news")
			}
			if c.DeleteTaintRule("repair") != news || c.DeleteTaintRule("repair") {
				t.Errorf("its end is news: %t, or twice", !news)
			}
			if got := c.count(t, "whole"); got != before {
				t.Errorf("afterwards %+v, before %+v", got, before)
			}
		})
	}
}

// Rules are about devices by what they are called: what one of them shares with others
// is not ruled out.
func TestRulesOfSeveralDevices(t *testing.T) {
	c := newCluster(t, "dgx-h100")
	pool := ptr.To("dgx-h100")
	whole, one := c.count(t, "whole"), c.count(t, "one")
	rule := taintRule("first", &resourceapi.DeviceTaintSelector{Pool: pool, Device: ptr.To("gpu-1b-00")}, resourceapi.DeviceTaintEffectNoSchedule)
	c.SetTaintRule(rule)
	c.SetTaintRule(taintRule("second", &resourceapi.DeviceTaintSelector{Pool: pool, Device: ptr.To("gpu-43-00")}, resourceapi.DeviceTaintEffectNoSchedule))
	if got := c.count(t, "whole").Free; got != whole.Free-2 {
		t.Errorf("%d whole GPUs are free, of %d", got, whole.Free)
	}
	if got := c.count(t, "one"); got != one {
		t.Errorf("partitions: %+v, before %+v", got, one)
	}
	moved := rule.DeepCopy()
	moved.Spec.DeviceSelector.Device = ptr.To("gpu-43-00")
	if !c.SetTaintRule(moved) {
		t.Error("another device is no news")
	}
	if got := c.count(t, "whole").Free; got != whole.Free-1 {
		t.Errorf("%d whole GPUs are free, of %d", got, whole.Free)
	}
}
