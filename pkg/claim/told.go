package claim

import (
	"errors"
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
)

// taken is a refusal, of class failure.Conflict, because of another claim.
type taken struct {
	by journal.Claim
	// text is the message, with the other claim as it may be called.
	text func(claim string) string
}

func (t *taken) Error() string { return t.text(fmt.Sprintf("claim %s (UID %s)", t.by, t.by.UID)) }
func (t *taken) Unwrap() error { return failure.Conflict }

// told is what the owner of a claim is told: a namespace learns nothing of another's
// claims. An administrator finds them by their UID.
func told(err error, to journal.Claim) error {
	var t *taken
	if !errors.As(err, &t) || t.by.Namespace == to.Namespace || t.by.Namespace == "" { // what the agent owes is nobody's
		return err
	}
	return failure.New(failure.Conflict, "%s", t.text(fmt.Sprintf("a claim of another namespace (UID %s)", t.by.UID)))
}
