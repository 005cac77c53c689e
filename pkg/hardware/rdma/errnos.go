package rdma

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// refused explains an errno.
func refused(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return fmt.Errorf("%s: %w: the process needs CAP_NET_ADMIN, and CAP_SYS_ADMIN for other network namespaces", what, err)
	case errors.Is(err, unix.EOPNOTSUPP):
		return failure.New(failure.Unsupported, "%s: %w: the NIC's driver cannot do it", what, err)
	case errors.Is(err, unix.EBUSY):
		return failure.New(failure.Busy, "%s: %w", what, err)
	case errors.Is(err, unix.ENODEV):
		return failure.New(failure.Busy, "%s: %w: it has just gone elsewhere", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// gone says whether an error means that a namespace, or what was in it, is no more.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENODEV)
}
