package rdma_test

import (
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/hardwaretest"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
)

func TestConformance(t *testing.T) {
	hardwaretest.TestNICs(t, func(t *testing.T) hardwaretest.NICFixture {
		w := newWorld(t)
		nic := w.both(first, "eth1", "mlx5_0", 1)
		w.kernel.AddNamespace("pod")
		w.kernel.AddNamespace("another")
		return hardwaretest.NICFixture{
			NICs: w.nics, NIC: nic,
			Move: func(namespace string, order hardware.NICMove) error {
				return w.nics.Move(t.Context(), namespace, order)
			},
			End: func(namespace string) error {
				w.kernel.End(namespace)
				w.kernel.AddNamespace(namespace) // for whoever comes next
				return nil
			},
			TakeName: func(name string) error {
				w.kernel.AddLink(kerneltest.HostPath, kernel.Link{Name: name, MAC: macOf(0x99)})
				return nil
			},
			GiveName: func(name string) error {
				w.kernel.RemoveLink(kerneltest.HostPath, name)
				return nil
			},
			SetLink: func(there bool) error {
				w.kernel.SetCarrier(kerneltest.HostPath, "eth1", there)
				return nil
			},
			Unplug: func() error {
				w.remove(first)
				w.kernel.RemoveLink(pod, "net1")
				return nil
			},
			Plug: func() error {
				w.link("eth1", first, 1)
				w.write("bus/pci/devices/"+first, "->../../../devices/pci0000:10/0000:10:01.0/"+first)
				return nil
			},
			SetExclusive: func(exclusive bool) error {
				w.kernel.SetExclusive(exclusive)
				return nil
			},
			Lacks: map[string]string{"VirtualFunctions": "files in a tree make no virtual functions: test/vm does"},
		}
	})
}
