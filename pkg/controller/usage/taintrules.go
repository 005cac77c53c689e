package usage

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
)

// SetTaintRule tells of a DeviceTaintRule as it is now, and returns whether it taints
// other devices than before; it is kept, and must not be changed.
func (s *Store) SetTaintRule(rule *resourceapi.DeviceTaintRule) bool {
	return s.setTaintRule(rule.Name, &rule.Spec)
}

// DeleteTaintRule tells that a DeviceTaintRule has gone.
func (s *Store) DeleteTaintRule(name string) bool { return s.setTaintRule(name, nil) }

func (s *Store) setTaintRule(name string, now *resourceapi.DeviceTaintRuleSpec) bool {
	if now != nil && !taints(now) {
		now = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.rules[name]
	if equality.Semantic.DeepEqual(before, now) {
		return false // its status, mostly
	}
	if delete(s.rules, name); now != nil {
		s.rules[name] = now
	}
	for pool, p := range s.pools {
		if before != nil && isOf(before, pool) || now != nil && isOf(now, pool) {
			p.changed()
		}
	}
	return true
}

// taints says whether a rule keeps claims from any of this driver's devices.
func taints(rule *resourceapi.DeviceTaintRuleSpec) bool {
	of := rule.DeviceSelector
	return of != nil && (of.Driver == nil || *of.Driver == catalog.DriverName) && rule.Taint.Effect != resourceapi.DeviceTaintEffectNone
}

func isOf(rule *resourceapi.DeviceTaintRuleSpec, pool string) bool {
	return rule.DeviceSelector.Pool == nil || *rule.DeviceSelector.Pool == pool
}

// ruledOut returns what says whether a rule taints a device of the pool.
func (s *Store) ruledOut(pool string) func(device string) bool {
	all, names := false, map[string]bool{}
	for _, rule := range s.rules {
		switch device := rule.DeviceSelector.Device; {
		case !isOf(rule, pool):
		case device == nil:
			all = true
		default:
			names[*device] = true
		}
	}
	return func(device string) bool { return all || names[device] }
}
