package rdma

import (
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
)

// nodes makes sure that the character devices which the container has got are still the
// function's: a driver that is loaded anew, and a move of its RDMA device, number them
// anew.
func (n *NICs) nodes(order hardware.NICMove) error {
	for _, node := range order.Nodes {
		if is, own := n.tree.Node(node); own && is != order.Home.RDMA {
			return failure.New(failure.Conflict,
				"%s is no longer of %s but of %q: the kernel has numbered RDMA devices anew since the claim was prepared: delete the Pod to have it prepared again", node, order.Home.RDMA, is)
		}
	}
	return nil
}

// Namespace is the file of a process's network namespace.
func (n *NICs) Namespace(pid int) string {
	return fmt.Sprintf("%s/%d/ns/net", n.options.ProcRoot, pid)
}
