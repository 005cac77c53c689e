// Package nccl says to NVIDIA's collective communications library (NCCL) what it cannot
// find out well by itself: by environment variables, and by a file that says where GPUs
// and NICs sit. It is pure. Names and values are those of NCCL's user guide,
// "Environment Variables".
package nccl

import (
	"slices"
	"strconv"
	"strings"
)

// NIC is what a container is given of one.
type NIC struct {
	// RDMA is the RDMA device's name.
	RDMA string
	// TrafficClass that its traffic is to have; nil: nobody has said so.
	TrafficClass *int
	// GIDIndex by which it is reached over IPv4 with RoCE v2; nil where it is not known,
	// or may become another.
	GIDIndex *int
}

// Environment of a container that is given a device with that NIC. Of several devices
// of a container the last one's counts, so that each names all of the claim's NICs: of
// those that a container is not given NCCL can open none, and goes on without them.
func Environment(own NIC, all []NIC) []string {
	var names []string
	for _, n := range all {
		if n.RDMA != "" && !slices.Contains(names, n.RDMA) {
			names = append(names, n.RDMA)
		}
	}
	var env []string
	if len(names) > 0 {
		// Without the '=' that begins the list, mlx5_1 would be mlx5_10, too.
		env = append(env, "NCCL_IB_HCA=="+strings.Join(names, ","))
	}
	if own.TrafficClass != nil {
		env = append(env, "NCCL_IB_TC="+strconv.Itoa(*own.TrafficClass))
	}
	if index := commonGIDIndex(all); index != nil {
		env = append(env, "NCCL_IB_GID_INDEX="+strconv.Itoa(*index))
	}
	return env
}

// commonGIDIndex is that of all NICs, since NCCL takes but one. Versions before 2.21 find
// none by themselves; later ones do, so that where one is unknown nothing is said.
func commonGIDIndex(all []NIC) *int {
	for _, n := range all {
		if n.GIDIndex == nil || *n.GIDIndex != *all[0].GIDIndex {
			return nil
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[0].GIDIndex
}
