package claim

import (
	"context"
	"errors"
	"fmt"
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
	began, told := time.Now(), false
	tell := func(err error) {
		if !told {
			told = true
			m.Waiting(e.Claim, m.named(err))
		}
	}
	for wait := busyFirst; ; wait = min(2*wait, busyMost) {
		nudge := m.nudge() // what happens from here on
		err := m.release(ctx, e)
		if errors.Is(err, failure.Unreachable) {
			m.Waiting(e.Claim, err)
		}
		if err == nil || !errors.Is(err, failure.Busy) {
			return err
		}
		if time.Since(began) >= m.Quiet {
			tell(err)
		}
		again := time.NewTimer(wait)
		select {
		case <-again.C:
		case <-nudge:
			// Nudges come in crowds, and this release's own changes are among them.
			again.Reset(busyFirst)
			select {
			case <-again.C:
			case <-patient.Done():
			}
		case <-patient.Done():
		}
		again.Stop()
		if patient.Err() != nil {
			tell(err)
			return m.named(err)
		}
	}
}

// inUse is the error of what somebody has open. Who that is takes a look at every
// process, and is for named to say.
type inUse struct {
	err         error
	gpu         string
	gpuInstance *int // nil: the GPU itself
}

func (u *inUse) Error() string { return u.err.Error() }

func (u *inUse) Unwrap() error { return u.err }

// held notes what a failed change was about, where it failed since that is in use.
func held(err error, gpu string, gpuInstance *int) error {
	if !errors.Is(err, failure.Busy) {
		return err
	}
	return &inUse{err, gpu, gpuInstance}
}

// named adds who has in use what is in use.
func (m *Manager) named(err error) error {
	var u *inUse
	if !errors.As(err, &u) || m.Holders == nil {
		return err
	}
	gpu, known := m.Machine().GPU(u.gpu)
	if !known {
		return err
	}
	who, unknown := m.Holders(gpu, u.gpuInstance)
	if unknown == nil && len(who) == 0 && u.gpuInstance != nil {
		who, unknown = m.Holders(gpu, nil) // some monitors only open the GPU
	}
	switch {
	case unknown != nil:
		return fmt.Errorf("%w; who holds it could not be found out: %w", err, unknown)
	case len(who) == 0:
		return fmt.Errorf("%w; no process of this node has it open any more", err)
	}
	return fmt.Errorf("%w; it is held by %s", err, list(who))
}

// list joins names: "a, b and c".
func list(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
