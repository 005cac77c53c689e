package kernel

import (
	"bytes"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// anyEvent is for messages that need no look inside.
func anyEvent([]byte) []Event { return []Event{{}} }

// routeEvents reads rtnetlink(7)'s messages. Routes are only of interest where they are
// default ones: there are nodes with a million others.
func routeEvents(datagram []byte) []Event {
	messages, err := syscall.ParseNetlinkMessage(datagram)
	if err != nil {
		return []Event{{}}
	}
	var events []Event
	for _, m := range messages {
		switch m.Header.Type {
		case unix.RTM_NEWLINK, unix.RTM_DELLINK:
			link, err := parseLink(m.Data)
			if err != nil {
				events = append(events, Event{})
				continue
			}
			events = append(events, Event{Link: link.Name, Index: link.Index, Kind: link.Kind})
		case unix.RTM_NEWADDR, unix.RTM_DELADDR:
			if len(m.Data) < unix.SizeofIfAddrmsg {
				continue
			}
			events = append(events, Event{Index: int(nl.DeserializeIfAddrmsg(m.Data).Index)})
		case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
			if len(m.Data) < unix.SizeofRtMsg || nl.DeserializeRtMsg(m.Data).Dst_len != 0 {
				continue
			}
			events = append(events, Event{})
		default: // rules, DCB
			events = append(events, Event{})
		}
	}
	return events
}

// subsystems whose devices are NICs or parts of them, as uevents name them.
var subsystems = [][]byte{
	[]byte("SUBSYSTEM=pci"), []byte("SUBSYSTEM=infiniband"), []byte("SUBSYSTEM=infiniband_verbs"), []byte("SUBSYSTEM=infiniband_mad"),
}

// uevents reads one of the kernel's messages about devices: strings that end with NUL.
// Network interfaces have better ones, above.
func uevents(datagram []byte) []Event {
	for field := range bytes.SplitSeq(datagram, []byte{0}) {
		if slices.ContainsFunc(subsystems, func(s []byte) bool { return bytes.Equal(s, field) }) {
			return []Event{{}}
		}
	}
	return nil
}
