package claim

import (
	"sync"

	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// decoded remembers the steps of records as long as those stay as they are: every claim
// that shares a GPU looks at those of all others. The zero value is ready.
type decoded struct {
	mu    sync.Mutex // guards byUID
	byUID map[string]decodedSteps
}

type decodedSteps struct {
	of    *journal.Entry // the journal has another one after each change
	steps []plan.Step
	err   error
}

// steps of an entry that the journal keeps. The caller must not change them.
func (d *decoded) steps(e *journal.Entry) ([]plan.Step, error) {
	d.mu.Lock()
	known := d.byUID[e.Claim.UID]
	d.mu.Unlock()
	if known.of == e {
		return known.steps, known.err
	}
	fresh := decodedSteps{of: e}
	for i := range e.Steps {
		s, err := stepOf(e, i)
		if err != nil {
			fresh.err = err
		}
		fresh.steps = append(fresh.steps, s)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byUID == nil {
		d.byUID = map[string]decodedSteps{}
	}
	d.byUID[e.Claim.UID] = fresh
	return fresh.steps, fresh.err
}

// trim forgets everything once most of it is of records that are gone.
func (d *decoded) trim(records int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.byUID) > 2*records {
		clear(d.byUID)
	}
}
