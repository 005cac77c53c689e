package claim

import (
	"encoding/json"
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// detail is what the journal keeps of a plan beside its steps.
type detail struct {
	Devices []plan.Device `json:"devices"`
}

// outcome is what the journal keeps of a step that was done. A compute mode has
// nothing to report but that it is set.
type outcome struct {
	Done bool `json:"done"`
}

func newEntry(c journal.Claim, bootID string, p plan.Plan) (*journal.Entry, error) {
	e := &journal.Entry{Claim: c, BootID: bootID, Holds: p.Holds, Locks: p.Locks}
	var err error
	if e.Detail, err = json.Marshal(detail{Devices: p.Devices}); err != nil {
		return nil, err
	}
	for _, s := range p.Steps {
		intent, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		e.Steps = append(e.Steps, journal.Step{Intent: intent})
	}
	return e, nil
}

func devicesOf(e *journal.Entry) ([]plan.Device, error) {
	var d detail
	if err := json.Unmarshal(e.Detail, &d); err != nil {
		return nil, failure.New(failure.Corrupt, "record of claim %s: devices: %w", e.Claim, err)
	}
	return d.Devices, nil
}

func stepOf(e *journal.Entry, i int) (plan.Step, error) {
	var s plan.Step
	if err := json.Unmarshal(e.Steps[i].Intent, &s); err != nil {
		return s, failure.New(failure.Corrupt, "record of claim %s: step %d: %w", e.Claim, i, err)
	}
	return s, nil
}

func done() json.RawMessage {
	content, err := json.Marshal(outcome{Done: true})
	if err != nil {
		panic(fmt.Sprintf("encode a constant: %v", err))
	}
	return content
}
