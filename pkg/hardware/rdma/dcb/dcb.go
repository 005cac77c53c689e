// Package dcb has the messages in which the kernel is asked how a port treats classes of
// traffic, and told (linux/dcbnl.h; IEEE 802.1Qaz and 802.1Qbb). It sends none.
package dcb

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Kinds of message (linux/rtnetlink.h).
const (
	Get = 78 // RTM_GETDCB
	Set = 79 // RTM_SETDCB
)

// Commands and attributes (linux/dcbnl.h).
const (
	commandSet    = 20 // DCB_CMD_IEEE_SET
	commandGet    = 21 // DCB_CMD_IEEE_GET
	commandDelete = 27 // DCB_CMD_IEEE_DEL

	attributeName = 1  // DCB_ATTR_IFNAME
	attributeIEEE = 13 // DCB_ATTR_IEEE

	ieeeETS   = 1  // DCB_ATTR_IEEE_ETS
	ieeePFC   = 2  // DCB_ATTR_IEEE_PFC
	ieeeApps  = 3  // DCB_ATTR_IEEE_APP_TABLE
	ieeeTrust = 11 // DCB_ATTR_DCB_APP_TRUST_TABLE, from Linux 6.2

	entryIEEE = 1 // DCB_ATTR_IEEE_APP, in both tables
	entryDCB  = 2 // DCB_ATTR_DCB_APP

	selectorDSCP = 5   // IEEE_8021QAZ_APP_SEL_DSCP
	selectorPCP  = 255 // DCB_APP_SEL_PCP
)

// Sizes of what is in them, in bytes, and places therein.
const (
	header     = 4   // struct dcbmsg
	sizePFC    = 136 // struct ieee_pfc
	sizeETS    = 59  // struct ieee_ets
	sizeApp    = 4   // struct dcb_app
	enabled    = 1   // ieee_pfc.pfc_en
	classes    = 8
	bandwidth  = 3                     // ieee_ets.tc_tx_bw
	received   = bandwidth + classes   // .tc_rx_bw
	algorithm  = bandwidth + 2*classes // .tc_tsa
	ofPriority = bandwidth + 3*classes // .prio_tc
)

// State is what a port has.
type State struct {
	machine.DCB
	// pfc and ets are as the kernel gave them: what is not set anew keeps its value. Nil:
	// the port does not say.
	pfc, ets []byte
	// ordered says that trust is set by itself. On other ports the first entry of a code
	// point turns it to DSCP, and the last one's removal to PCP.
	ordered bool
}

// Ask is the message that asks for a link's port.
func Ask(link string) []byte { return message(commandGet, link) }

func message(command uint8, link string, ieee ...*nl.RtAttr) []byte {
	data := []byte{unix.AF_UNSPEC, command, 0, 0}
	data = append(data, nl.NewRtAttr(attributeName, nl.ZeroTerminated(link)).Serialize()...)
	if len(ieee) > 0 {
		nest := nl.NewRtAttr(attributeIEEE|unix.NLA_F_NESTED, nil)
		for _, a := range ieee {
			nest.AddChild(a)
		}
		data = append(data, nest.Serialize()...)
	}
	return data
}

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
