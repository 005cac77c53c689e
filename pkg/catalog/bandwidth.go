package catalog

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// bandwidthStep is the least of a NIC's bandwidth that a claim can reserve, in bits per
// second.
const bandwidthStep = 1e9

// bandwidth of the device's NIC; of one that several pairs share, each has an equal part.
// Of an RDMA device, claims reserve what they want, and nothing where they do not say.
func bandwidth(d machine.Device) resourceapi.DeviceCapacity {
	all := d.NIC.Bandwidth()
	switch {
	case d.Kind.Shared():
		return divided(bits(all), bits(0), bits(0), bits(bandwidthStep))
	case d.Kind == machine.KindPair:
		all /= int64(d.Lanes)
	}
	return resourceapi.DeviceCapacity{Value: bits(all)}
}

func bits(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
