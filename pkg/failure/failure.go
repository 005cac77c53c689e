// Package failure names the few classes of error that callers decide on. An
// adapter turns a foreign error code into one of them and says which thing it
// happened to; nothing above an adapter looks at a foreign code.
package failure

import (
	"errors"
	"fmt"
)

// The classes. Test for them with errors.Is.
var (
	// Absent: the thing is not there, or no longer.
	Absent = errors.New("absent")
	// Unreachable: it cannot be asked now, so that nothing is known of it.
	Unreachable = errors.New("unreachable")
	// Busy: somebody uses the thing; trying again later can succeed.
	Busy = errors.New("busy")
	// Conflict: the thing is held for somebody else.
	Conflict = errors.New("conflict")
	// Unsupported: this hardware, driver or kernel cannot do it, ever.
	Unsupported = errors.New("unsupported")
	// Invalid: the request itself is wrong; trying again cannot succeed.
	Invalid = errors.New("invalid")
	// Corrupt: a record exists but does not parse.
	Corrupt = errors.New("corrupt")
)

// classified carries a class beside its message without printing it, so that
// what people read is the message alone.
type classified struct {
	class   error
	message error
}

func (e *classified) Error() string   { return e.message.Error() }
func (e *classified) Unwrap() []error { return []error{e.class, e.message} }

// New returns an error of class, with a message formatted as by fmt.Errorf.
// The message names the thing concerned and, where there is one, the cure.
func New(class error, format string, args ...any) error {
	return &classified{class: class, message: fmt.Errorf(format, args...)}
}

// ClassOf returns the class of err, or nil where it has none.
func ClassOf(err error) error {
	for _, class := range []error{Absent, Unreachable, Busy, Conflict, Unsupported, Invalid, Corrupt} {
		if errors.Is(err, class) {
			return class
		}
	}
	return nil
}
