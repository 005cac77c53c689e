// Package dcb has the messages in which the kernel is asked how a port treats classes of
// traffic, and told (linux/dcbnl.h; IEEE 802.1Qaz and 802.1Qbb). It sends none.
package dcb

import (
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
