package simulator_test

import (
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/hardwaretest"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/description"
)

// suiteNIC is all that the suite wants of a NIC.
const suiteNIC = `
name: suite
nicModel: connectx-7
dcb: {pfc: [3], trust: dscp, dscp: {26: 3}}
nics:
- address: 0000:31:00.0
  above: pci0000:30/0000:30:01.0
  numaNode: 0
  mtu: 9000
  maxVFs: 16
  netdevs: [{addresses: [198.18.0.1/24, 'fd00:18::1/64'], routes: [{to: 198.19.0.0/16, via: 198.18.0.254}]}]
`

func TestNICsConformance(t *testing.T) {
	hardwaretest.TestNICs(t, func(t *testing.T) hardwaretest.NICFixture {
		spec, err := description.Parse([]byte(suiteNIC))
		must(t, err)
		m, _, err := simulator.Create(t.TempDir(), spec)
		must(t, err)
		nic := spec.NICs[0].Address.String()
		return hardwaretest.NICFixture{
			NICs: m.NICs(), NIC: spec.NICs[0].Address,
			Move:     func(namespace string, order hardware.NICMove) error { return m.MoveNIC(order, namespace) },
			End:      m.EndNamespace,
			TakeName: m.TakeName, GiveName: m.GiveName,
			SetLink:      func(there bool) error { return m.SetLink(nic, there) },
			Unplug:       func() error { return m.Unplug(nic) },
			Plug:         func() error { return m.Plug(nic) },
			SetExclusive: m.SetRDMAExclusive,
		}
	})
}
