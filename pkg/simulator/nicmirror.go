package simulator

import (
	"errors"
	"reflect"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// MirrorNetdev makes a function's i-th interface what its stand-in on a real kernel is
// (pkg/simulator/standin), and says whether it was something else. Its routes are not
// looked at. failure.Absent where that has gone, although one of another generation may
// have come in its place.
func (m *Machine) MirrorNetdev(function machine.Address, generation, i int, is NetdevState) (changed bool, err error) {
	err = m.updateNICs(func(s *State) error {
		f, err := s.function(function)
		if err != nil {
			return err
		}
		if f.Generation != generation {
			return failure.New(failure.Absent, "%s has gone, and come anew", f)
		}
		if i >= len(f.Netdevs) {
			return failure.New(failure.Absent, "%s has no interface %d", f, i)
		}
		d := &f.Netdevs[i]
		if is.Routes = d.Routes; d.Namespace != is.Namespace {
			is.Routes = nil
			f.flushDCB()
		}
		if len(d.Addresses) == 0 && len(is.Addresses) == 0 {
			is.Addresses = d.Addresses
		}
		if reflect.DeepEqual(*d, is) {
			return errUnchanged
		}
		*d = is
		return nil
	})
	if errors.Is(err, errUnchanged) {
		return false, nil
	}
	return err == nil, err
}
