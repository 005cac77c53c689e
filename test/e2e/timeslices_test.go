package e2e

import (
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// TestTimeSlices: two Pods with one interval set it once; a third that wants another
// is told who has set it, and the last to go puts it back.
func TestTimeSlices(t *testing.T) {
	e := alone(t)
	body := selected(timeSlice("10Gi"), hasUUID(e.gpu(node1, 0).Spec.UUID))
	e.apply(template("any", body))
	e.apply(configuredShare("long", body, "sharing: {timeSlicing: {interval: Long}}"))
	e.apply(configuredShare("short", body, "sharing: {timeSlicing: {interval: Short}}"))
	before := e.settings(node1)
	e.pod("any", fromTemplate("any"))
	e.attribute(e.verify("any")[0], "type", "timeslice")
	e.timeSlice(node1, 0, machine.TimeSliceDefault)
	if now := e.settings(node1); now != before {
		t.Errorf("nvidia-smi ran %d times for a claim that wants no interval", now-before)
	}
	e.pod("first", fromTemplate("long"), uses("9G"))
	e.ready("first")
	once := e.settings(node1)
	e.pod("second", fromTemplate("long"), uses("9G"))
	e.ready("second")
	if now := e.settings(node1); now != once {
		t.Errorf("nvidia-smi ran %d times more for an interval that was set", now-once)
	}
	e.timeSlice(node1, 0, machine.TimeSliceLong)
	e.enforced("first", machine.EnforcementNone)

	e.pod("third", fromTemplate("short"))
	e.prepareFailed("third", "sharing.timeSlicing.interval: Short, but claim "+e.namespace+"/", "has set Long")
	agree(t)
	e.gone("third")
	e.gone("first")
	e.timeSlice(node1, 0, machine.TimeSliceLong)
	e.gone("second")
	e.timeSlice(node1, 0, machine.TimeSliceDefault)
	e.verify("any")
}

// timeSlice compares a GPU's.
func (e *env) timeSlice(node string, index int, want machine.TimeSlice) {
	e.Helper()
	if got := e.gpu(node, index).TimeSliceOf(); got != want {
		e.Errorf("GPU %d on %s has time slice %s, want %s", index, node, got, want)
	}
}

// settings is how often nvidia-smi has run on a node to read or set a time slice.
func (e *env) settings(node string) int {
	e.Helper()
	state, err := e.Machine(e.ctx, node)
	e.must(err)
	return state.Runs["nvidia-smi compute-policy"]
}
