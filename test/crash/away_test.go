package crash

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	hw "github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// away is a dovetail-mps that does not answer.
type away struct{ hw.Sharing }

var errAway = failure.New(failure.Unreachable, "dovetail-mps does not answer")

func (away) StartMPS(context.Context, []string) (hw.MPSDaemon, error) {
	return hw.MPSDaemon{}, errAway
}

func (away) StopMPS(context.Context, []string) error { return errAway }

func (away) MakeNamespace(context.Context, []string, string, hw.MPSLimits) (string, error) {
	return "", errAway
}

func (away) RemoveNamespace(context.Context, []string, string) error { return errAway }

func (away) TimeSlice(context.Context, string) (machine.TimeSlice, error) { return "", errAway }

func (away) SetTimeSlice(context.Context, string, machine.TimeSlice) error { return errAway }
