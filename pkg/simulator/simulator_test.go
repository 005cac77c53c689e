package simulator_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func TestEveryMachineIsMadeOnce(t *testing.T) {
	for _, name := range machines.Names() {
		t.Run(name, func(t *testing.T) {
			m := simulatortest.New(t, name)
			d, err := m.GPUs().Describe(t.Context())
			if !slices.Contains(machines.WithGPUs(), name) {
				if !errors.Is(err, failure.Unreachable) || len(m.Spec().GPUs) > 0 {
					t.Errorf("%d GPUs, described as %+v, %v", len(m.Spec().GPUs), d, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(d.GPUs) == 0 || d.Driver.Version == "" {
				t.Errorf("described as %+v", d)
			}
		})
	}
}
