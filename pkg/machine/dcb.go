package machine

import (
	"fmt"
	"slices"
)

// DCB is the part of a port's data center bridging (IEEE 802.1Q) that makes Ethernet
// lossless for RDMA.
type DCB struct {
	// PFC says of each of the eight priorities whether the port is paused rather than
	// to lose a frame of it.
	PFC [8]bool `json:"pfc"`
	// Trust is what priorities are taken from. Empty: the port does not say.
	Trust Trust `json:"trust,omitempty"`
	// DSCP is the application table's part for that trust: priority by code point.
	DSCP []DSCPPriority `json:"dscp,omitempty"`
	// Bandwidth of each traffic class in percent, and each priority's traffic class
	// (ETS). Nil: the port does not say.
	ETS *ETS `json:"ets,omitempty"`
}

// Trust is what a port takes a frame's priority from.
type Trust string

// Kinds of trust.
const (
	TrustPCP  Trust = "pcp"  // the VLAN tag
	TrustDSCP Trust = "dscp" // the IP header
)

// DSCPPriority maps a code point, 0 to 63, to a priority, 0 to 7.
type DSCPPriority struct {
	DSCP     uint8 `json:"dscp"`
	Priority uint8 `json:"priority"`
}

// ETS is a port's enhanced transmission selection.
type ETS struct {
	// Class of each priority; Bandwidth in percent and Algorithm (linux/dcbnl.h,
	// IEEE_8021QAZ_TSA_*) of each class.
	Class     [8]uint8 `json:"class"`
	Bandwidth [8]uint8 `json:"bandwidth"`
	Algorithm [8]uint8 `json:"algorithm"`
}

// Lossless says whether any priority is.
func (d *DCB) Lossless() bool { return d.PFC != [8]bool{} }

// Priorities that are lossless, from the lowest.
func (d *DCB) Priorities() []int {
	var list []int
	for i, on := range d.PFC {
		if on {
			list = append(list, i)
		}
	}
	return list
}

// Misses says what the port has otherwise than wanted, in words; nil where nothing. What
// is zero in want may be anything, and so may code points of which it says nothing.
func (d *DCB) Misses(want *DCB) error {
	switch {
	case want.Lossless() && d.PFC != want.PFC:
		return fmt.Errorf("PFC on priorities %v, want %v", d.Priorities(), want.Priorities())
	case want.Trust != "" && d.Trust != want.Trust:
		return fmt.Errorf("trust %q, want %q", d.Trust, want.Trust)
	case want.ETS != nil && (d.ETS == nil || *d.ETS != *want.ETS):
		return fmt.Errorf("ETS %+v, want %+v", d.ETS, want.ETS)
	}
	for _, e := range want.DSCP {
		if !slices.Contains(d.DSCP, e) {
			return fmt.Errorf("no entry DSCP %d: priority %d", e.DSCP, e.Priority)
		}
	}
	return nil
}
