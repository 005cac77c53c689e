// Package wire is what the agent and dovetail-mps say to each other: the gRPC
// service, and how errors of pkg/failure travel with it.
package wire

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

//go:generate go -C ../../../../hack/protogen run . ${PWD}/mps.proto

// classes by the code that they travel as. Unimplemented and Unavailable are not
// among them: gRPC itself says so where a method, or a server, is not there.
var classes = map[codes.Code]error{
	codes.NotFound:           failure.Absent,
	codes.ResourceExhausted:  failure.Unreachable,
	codes.Aborted:            failure.Busy,
	codes.AlreadyExists:      failure.Conflict,
	codes.FailedPrecondition: failure.Unsupported,
	codes.InvalidArgument:    failure.Invalid,
	codes.DataLoss:           failure.Corrupt,
}

// ToStatus makes an error ready to travel.
func ToStatus(err error) error {
	if err == nil {
		return nil
	}
	if class := failure.ClassOf(err); class != nil {
		for code, c := range classes {
			if errors.Is(class, c) {
				return status.Error(code, err.Error())
			}
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, err.Error())
	}
	return status.Error(codes.Unknown, err.Error())
}

// FromStatus is what the server meant. One that is not there, or that is too old to
// know the call, is failure.Unreachable; cure says what can be done about it.
func FromStatus(err error, cure string) error {
	if err == nil {
		return nil
	}
	s := status.Convert(err)
	if class, ok := classes[s.Code()]; ok {
		return failure.New(class, "%s", s.Message())
	}
	switch s.Code() {
	case codes.Canceled:
		return context.Canceled
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case codes.Unimplemented:
		return failure.New(failure.Unreachable, "dovetail-mps is too old: %s: delete its Pod, and a new one takes over; clients of MPS on this node lose their work", s.Message())
	case codes.Unavailable:
		return failure.New(failure.Unreachable, "dovetail-mps does not answer (%s): %s", s.Message(), cure)
	default:
		return errors.New(s.Message())
	}
}
