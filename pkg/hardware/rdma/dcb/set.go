package dcb

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Change is the message that sets what is not zero in want and not so already. Nil:
// there is nothing to set. Entries that want does not have stay until Prune.
func (s *State) Change(link string, want machine.DCB) []byte {
	var ieee []*nl.RtAttr
	if want.ETS != nil && s.ets != nil && *want.ETS != *s.ETS {
		ieee = append(ieee, nl.NewRtAttr(ieeeETS, s.withETS(*want.ETS)))
	}
	if want.Lossless() && want.PFC != s.PFC {
		ieee = append(ieee, nl.NewRtAttr(ieeePFC, s.withPFC(want.PFC)))
	}
	if missing := without(want.DSCP, s.DSCP); len(missing) > 0 {
		ieee = append(ieee, apps(missing))
	}
	if s.ordered && want.Trust != "" && want.Trust != s.Trust {
		ieee = append(ieee, order(want.Trust))
	}
	if len(ieee) == 0 {
		return nil
	}
	return message(commandSet, link, ieee...)
}

// Prune is the message that removes the entries of code points that are not wanted: where
// some are, the others; where priorities are to come from the VLAN tag and follow the
// entries, all. Nil: there are none.
func (s *State) Prune(link string, want machine.DCB) []byte {
	byEntries := want.Trust == machine.TrustPCP && !s.ordered
	if len(want.DSCP) == 0 && !byEntries {
		return nil
	}
	surplus := without(s.DSCP, want.DSCP)
	if len(surplus) == 0 {
		return nil
	}
	return message(commandDelete, link, apps(surplus))
}

// Result reads what came of a change: one byte, an errno as a negative number. The message
// itself is acknowledged in any case.
func Result(answer []byte) error {
	if len(answer) < header {
		return unix.EBADMSG
	}
	all, err := attributes(answer[header:])
	if err != nil {
		return err
	}
	for _, a := range all {
		if a.kind == attributeIEEE && len(a.value) > 0 && a.value[0] != 0 {
			return unix.Errno(-a.value[0]) // of one byte
		}
	}
	return nil
}

// withPFC keeps the port's other values. A port that told none gets zeros.
func (s *State) withPFC(want [8]bool) []byte {
	data := bytes.Clone(s.pfc)
	if data == nil {
		data = make([]byte, sizePFC)
	}
	data[enabled] = 0
	for i, on := range want {
		if on {
			data[enabled] |= 1 << i
		}
	}
	return data
}

func (s *State) withETS(want machine.ETS) []byte {
	data := bytes.Clone(s.ets)
	copy(data[bandwidth:], want.Bandwidth[:])
	copy(data[received:], want.Bandwidth[:])
	copy(data[algorithm:], want.Algorithm[:])
	copy(data[ofPriority:], want.Class[:])
	return data
}

func apps(entries []machine.DSCPPriority) *nl.RtAttr {
	table := nl.NewRtAttr(ieeeApps|unix.NLA_F_NESTED, nil)
	for _, e := range entries {
		data := binary.NativeEndian.AppendUint16([]byte{selectorDSCP, e.Priority}, uint16(e.DSCP))
		table.AddRtAttr(entryIEEE, data)
	}
	return table
}

// order is the table of selectors with what is trusted first.
func order(trust machine.Trust) *nl.RtAttr {
	table := nl.NewRtAttr(ieeeTrust|unix.NLA_F_NESTED, nil)
	if trust == machine.TrustDSCP {
		table.AddRtAttr(entryIEEE, []byte{selectorDSCP})
	} else {
		table.AddRtAttr(entryDCB, []byte{selectorPCP})
	}
	return table
}

// without are the entries of a that b has not.
func without(a, b []machine.DSCPPriority) []machine.DSCPPriority {
	return slices.DeleteFunc(slices.Clone(a), func(e machine.DSCPPriority) bool { return slices.Contains(b, e) })
}

func compare(a, b machine.DSCPPriority) int {
	return cmp.Or(cmp.Compare(a.DSCP, b.DSCP), cmp.Compare(a.Priority, b.Priority))
}
