package claim

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/journal"
)

// reading is the journal as one call reads it. What concerns the call's devices cannot
// change while it has their locks and writes nothing itself; so many records as a node
// can have take long enough to look at once.
type reading struct {
	done    bool
	records []journal.Record
	err     error
}

type readingKey struct{}

// onceRead has what is called with the context read the journal but once. For who has
// the locks, until the call changes its own record, from when on it is readAnew.
func onceRead(ctx context.Context) context.Context {
	return context.WithValue(ctx, readingKey{}, &reading{})
}

func readAnew(ctx context.Context) context.Context {
	return context.WithValue(ctx, readingKey{}, (*reading)(nil))
}

// records lists the journal.
func (m *Manager) records(ctx context.Context) ([]journal.Record, error) {
	r, _ := ctx.Value(readingKey{}).(*reading)
	if r == nil {
		return m.Journal.List()
	}
	if !r.done {
		r.done = true
		r.records, r.err = m.Journal.List()
	}
	return r.records, r.err
}
