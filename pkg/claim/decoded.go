package claim

import (
	"sync"

	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// decoded remembers what is in records as long as those stay as they are: every claim
// that shares a GPU looks at those of all others. The zero value is ready.
type decoded struct {
	mu    sync.Mutex // guards byUID
	byUID map[string]decodedEntry
}

// decodedEntry must not be changed.
type decodedEntry struct {
	of    *journal.Entry // the journal has another one after each change
	steps []plan.Step
	err   error // of the steps
	// held are its devices; errOfHeld where they cannot be read.
	held      []machine.Held
	errOfHeld error
}

// entry that the journal keeps.
func (d *decoded) entry(e *journal.Entry) decodedEntry {
	d.mu.Lock()
	known := d.byUID[e.Claim.UID]
	d.mu.Unlock()
	if known.of == e {
		return known
	}
	fresh := decodedEntry{of: e}
	devices, err := devicesOf(e)
	fresh.held, fresh.errOfHeld = plan.Held(devices, e.Holds), err
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
		d.byUID = map[string]decodedEntry{}
	}
	d.byUID[e.Claim.UID] = fresh
	return fresh
}

// trim forgets everything once most of it is of records that are gone.
func (d *decoded) trim(records int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.byUID) > 2*records {
		clear(d.byUID)
	}
}
