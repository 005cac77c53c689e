package claim

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
)

// Pauses between two tries of a release.
const (
	busyFirst = 50 * time.Millisecond
	busyMost  = time.Second
)

// releasePatiently releases a claim, and tries again as long as somebody holds what
// it has: a process that is ending, a monitor that looks. In between, others can
// work on the GPU.
func (m *Manager) releasePatiently(ctx context.Context, e *journal.Entry) error {
	patient, cancel := context.WithTimeout(ctx, m.BusyPatience)
	defer cancel()
	told := false
	for wait := busyFirst; ; wait = min(2*wait, busyMost) {
		err := m.release(ctx, e)
		if err == nil || !errors.Is(err, failure.Busy) {
			return err
		}
		if !told {
			told = true
			m.Waiting(e.Claim, err)
		}
		again := time.NewTimer(wait)
		select {
		case <-again.C:
		case <-patient.Done():
			again.Stop()
			return err
		}
	}
}

// list joins names: "a, b and c".
func list(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
