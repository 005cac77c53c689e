package plan

import (
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// lossyFor says why a port may lose traffic of a class, or, where no class is said, of
// any; empty where it does not.
func lossyFor(d *machine.DCB, trafficClass *int) string {
	switch {
	case !d.Lossless():
		return "has priority flow control for no priority"
	case trafficClass == nil || d.Trust == "":
		return "" // the port has one that does not; whether it is this one cannot be known
	case d.Trust != machine.TrustDSCP:
		return fmt.Sprintf("takes priorities from the VLAN tag (trust %s), so that traffic class %d says nothing to it", d.Trust, *trafficClass)
	}
	codePoint := uint8(*trafficClass >> 2)
	priority := uint8(0) // what is not in the table (IEEE 802.1Q, application priority)
	for _, entry := range d.DSCP {
		if entry.DSCP == codePoint {
			priority = entry.Priority
		}
	}
	if !d.PFC[priority] {
		return fmt.Sprintf("gives DSCP %d (traffic class %d) priority %d, which has no priority flow control", codePoint, *trafficClass, priority)
	}
	return ""
}

// gidIndex finds the entry by which RoCE v2 is reached over IPv4. It stays what it is as
// long as the interface stays with the host.
func gidIndex(rdma *machine.RDMADevice) *int {
	if rdma == nil || len(rdma.Ports) != 1 {
		return nil
	}
	for _, gid := range rdma.Ports[0].GIDs {
		if gid.Type == gidRoCEv2 && len(gid.GID) > len(mappedIPv4) && gid.GID[:len(mappedIPv4)] == mappedIPv4 {
			return &gid.Index
		}
	}
	return nil
}

// As sysfs has them.
const (
	gidRoCEv2  = "RoCE v2"
	mappedIPv4 = "0000:0000:0000:0000:0000:ffff:" // RFC 4291, 2.5.5.2
)
