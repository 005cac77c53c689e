package admission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/admission/fleet"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// sharing warns of configuration that each model that passes the selectors will refuse
// when the claim is prepared.
func (w *want) sharing(taken []*fleet.Model, f *Findings) {
	if w.admin {
		return
	}
	problem := func(format string, args ...any) {
		f.warn(w.path, fmt.Sprintf("configuration of request %s: "+format, append([]any{w.name}, args...)...))
	}
	if w.config.Sharing == machine.KindMPS && !slices.ContainsFunc(taken, mps) {
		problem("sharing.strategy: MPS, but no GPU of this cluster that is asked for has compute capability 7.0 or later: use TimeSlicing")
	}
	if limit := resource.NewQuantity(int64(w.config.MPS.Memory), resource.BinarySI); w.config.MPS.Memory > 0 && enough(taken, "memory", *limit) == nil {
		if nearest := most(taken, "memory"); nearest != nil {
			problem("sharing.mps.memoryLimit: %s is more than any device has that is asked for; the nearest is %s", limit, describe(nearest, "memory"))
		}
	}
	if kind := taken[0].Kind(); w.config.Enforcement == machine.EnforcementStrict && kind.SharesGPU() {
		levels := map[machine.Enforcement]bool{}
		for _, m := range taken {
			levels[machine.Enforcement(m.Text("memoryEnforcement"))] = true
		}
		switch {
		case levels[machine.EnforcementStrict]:
		case levels[machine.EnforcementBestEffort]:
			problem("enforcement: Strict, but no node of this cluster gives it: the nearest that works is BestEffort")
		default:
			problem("enforcement: Strict, but no node of this cluster gives it: the nearest that works is None")
		}
	}
}

// mps says whether the GPU can be shared by MPS, as far as its attributes tell.
func mps(m *fleet.Model) bool {
	version := m.Attributes["cudaComputeCapability"].VersionValue
	if version == nil {
		return true
	}
	major, _, _ := strings.Cut(*version, ".")
	n, err := strconv.Atoi(major)
	return err != nil || n == 0 || (&machine.GPU{ComputeCapability: machine.Version{Major: n}}).MPS()
}
