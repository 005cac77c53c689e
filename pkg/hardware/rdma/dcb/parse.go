package dcb

import (
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Parse reads the answer.
func Parse(answer []byte) (State, error) {
	var state State
	if len(answer) < header {
		return State{}, fmt.Errorf("DCB message of %d bytes: %w", len(answer), unix.EBADMSG)
	}
	all, err := attributes(answer[header:])
	for _, a := range all {
		if err == nil && a.kind == attributeIEEE {
			err = state.ieee(a.value)
		}
	}
	if err != nil {
		return State{}, fmt.Errorf("DCB message: %w", err)
	}
	return state, nil
}

func (s *State) ieee(nest []byte) error {
	all, err := attributes(nest)
	if err != nil {
		return err
	}
	for _, a := range all {
		switch a.kind {
		case ieeePFC:
			if len(a.value) >= sizePFC {
				s.pfc = slices.Clone(a.value[:sizePFC])
			}
		case ieeeETS:
			if len(a.value) >= sizeETS {
				s.ets = slices.Clone(a.value[:sizeETS])
			}
		case ieeeApps:
			err = s.apps(a.value)
		case ieeeTrust:
			s.ordered = true
			err = s.trust(a.value)
		}
		if err != nil {
			return err
		}
	}
	s.conclude()
	return nil
}

func (s *State) apps(table []byte) error {
	entries, err := attributes(table)
	for _, e := range entries {
		if e.kind == entryIEEE && len(e.value) >= sizeApp && e.value[0] == selectorDSCP {
			s.DSCP = append(s.DSCP, machine.DSCPPriority{
				Priority: e.value[1], DSCP: uint8(binary.NativeEndian.Uint16(e.value[2:])),
			})
		}
	}
	return err
}

// trust takes the first selector that says where priorities come from.
func (s *State) trust(table []byte) error {
	entries, err := attributes(table)
	for _, e := range entries {
		if len(e.value) == 0 || s.Trust != "" {
			continue
		}
		switch e.value[0] {
		case selectorDSCP:
			s.Trust = machine.TrustDSCP
		case selectorPCP:
			s.Trust = machine.TrustPCP
		}
	}
	return err
}

// conclude fills in what follows from what the port said.
func (s *State) conclude() {
	slices.SortFunc(s.DSCP, compare)
	if s.pfc != nil {
		for i := range s.PFC {
			s.PFC[i] = s.pfc[enabled]&(1<<i) != 0
		}
	}
	if s.ets != nil {
		s.ETS = &machine.ETS{
			Class:     [classes]uint8(s.ets[ofPriority:]),
			Bandwidth: [classes]uint8(s.ets[bandwidth:]),
			Algorithm: [classes]uint8(s.ets[algorithm:]),
		}
	}
	switch {
	case s.Trust != "" || s.pfc == nil && len(s.DSCP) == 0:
	case len(s.DSCP) > 0:
		s.Trust = machine.TrustDSCP
	default:
		s.Trust = machine.TrustPCP
	}
}
