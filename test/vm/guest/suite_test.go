package guest

import (
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/hardwaretest"
	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// TestConformance is the suite that every implementation passes, on the adapter and this
// kernel.
func TestConformance(t *testing.T) {
	hardwaretest.TestNICs(t, func(t *testing.T) hardwaretest.NICFixture {
		n := topology.Near
		disturbs(t, n)
		nics := newAdapter(t)
		furnish(t, nics, n)
		empty(t, n)
		pods := map[string]*pod{}
		return hardwaretest.NICFixture{
			NICs: nics, NIC: addresses[n.Name],
			Move: func(namespace string, order hardware.NICMove) error {
				if pods[namespace] == nil {
					pods[namespace] = newPod(t)
				}
				return nics.Move(t.Context(), pods[namespace].namespace(), order)
			},
			End: func(namespace string) error {
				pods[namespace].end()
				delete(pods, namespace)
				return nil
			},
			TakeName: func(name string) error { return netlink.LinkAdd(netlink.NewLinkBond(netlink.LinkAttrs{Name: name})) },
			GiveName: func(name string) error { return netlink.LinkDel(link(t, name)) },
			SetExclusive: func(exclusive bool) error {
				mode := "shared"
				if exclusive {
					mode = "exclusive"
				}
				setMode(t, mode)
				return nil
			},
			Lacks: map[string]string{
				"Link":           "the machine's cards have no cable that could be pulled from within",
				"NICConcurrency": "it takes minutes where a card is emulated; pkg/hardware/rdma has it on a kernel in memory",
				"WatchNICs":      "TestWatch has each change by itself, on the same adapter",
				"NICGone":        "a card that was taken out and put back has no RDMA device until the tests make one: see TestRemove",
			},
		}
	})
}
