package class

import "fmt"

// Unoffered is a class of which a node cannot publish all that it asks for.
type Unoffered struct {
	// Class is the PartitionClass's name.
	Class string
	// Why, and what to do about it.
	Why string
}

func unoffered(class, format string, args ...any) *Unoffered {
	return &Unoffered{Class: class, Why: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (u *Unoffered) Error() string { return "PartitionClass " + u.Class + ": " + u.Why }

// UnofferedIn finds them in an error of Offer's.
func UnofferedIn(err error) []*Unoffered {
	switch e := err.(type) { //nolint:errorlint // each part of what is joined is looked at
	case *Unoffered:
		return []*Unoffered{e}
	case interface{ Unwrap() []error }:
		var found []*Unoffered
		for _, part := range e.Unwrap() {
			found = append(found, UnofferedIn(part)...)
		}
		return found
	}
	return nil
}
