package sched

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// on is a scheduler with one node, a machine by its name.
func on(t *testing.T, name string) *Scheduler {
	t.Helper()
	s := New()
	s.Publish(node, catalog.Build(simulatortest.Describe(t, name), catalog.Options{}))
	return s
}

func pairs(count int64) resourceapi.DeviceRequest {
	return Several(count, Request("p", machine.KindPair))
}

func plain(kind machine.Kind, selectors ...string) resourceapi.DeviceRequest {
	return Request(string(kind), kind, selectors...)
}

// at is a selector of a device, or of its GPU, by PCI address.
func at(address string) string {
	return fmt.Sprintf("device.attributes[%q].pciBusID == %q", "resource.kubernetes.io", address)
}

var pairsOfDGX = []string{
	"pair-1b-00-18-00", "pair-43-00-40-00", "pair-52-00-4f-00", "pair-61-00-5e-00",
	"pair-9d-00-9a-00", "pair-c3-00-c0-00", "pair-d1-00-ce-00", "pair-df-00-dc-00",
}

func TestEightPairsInOneClaim(t *testing.T) {
	s := h100(t)
	all := s.gets(t, Claim("eight", pairs(8)), pairsOfDGX...)
	s.gets(t, Claim("ninth", pairs(1)))
	s.Release(all)
	s.gets(t, Claim("nine", pairs(9)))
}

func TestTwoClaimsOfFourPairs(t *testing.T) {
	s := h100(t)
	first := s.gets(t, Claim("first", pairs(4)), pairsOfDGX[:4]...)
	s.gets(t, Claim("second", pairs(4)), pairsOfDGX[4:]...)
	ninth := s.gets(t, Claim("ninth", pairs(1)))
	s.Release(first)
	s.gets(t, ninth, pairsOfDGX[0])
}

// A pair takes its GPU from all that is of it, and its NIC likewise.
func TestPairsExclude(t *testing.T) {
	const gpu, nic = "0000:1b:00.0", "0000:18:00.0"
	requests := map[string]resourceapi.DeviceRequest{
		"gpu-1b-00":          plain(machine.KindGPU, at(gpu)),
		"mig-1b-00-1g10gb-0": plain(machine.KindMIG, at(gpu), Profile("1g.10gb")),
		"mps-1b-00":          plain(machine.KindMPS, at(gpu)),
		"timeslice-1b-00":    plain(machine.KindTimeSlice, at(gpu)),
		"nic-18-00":          plain(machine.KindNIC, at(nic)),
		"rdma-18-00":         plain(machine.KindRDMA, at(nic)),
	}
	pair := plain(machine.KindPair, at(gpu))
	s := h100(t)
	for device, request := range requests {
		other := s.gets(t, Claim("other", request), device)
		waiting := s.gets(t, Claim("pair", pair))
		s.Release(other)
		s.gets(t, waiting, "pair-1b-00-18-00")
		s.gets(t, other)
		s.Release(waiting)
	}
}

// Two GPUs share a NIC: each has a lane of it, and both together leave nothing.
func TestLanes(t *testing.T) {
	s := on(t, "hgx-4nic")
	first := s.gets(t, Claim("first", pairs(1)), "pair-19-00-18-00")
	nic := s.gets(t, Claim("nic", plain(machine.KindNIC, at("0000:18:00.0"))))
	rdma := s.gets(t, Claim("rdma", plain(machine.KindRDMA, at("0000:18:00.0"))))
	second := s.gets(t, Claim("second", pairs(1)), "pair-1a-00-18-00")
	s.gets(t, Claim("six", pairs(6)), "pair-4b-00-4a-00", "pair-4c-00-4a-00", "pair-9b-00-9a-00", "pair-9c-00-9a-00", "pair-cb-00-ca-00", "pair-cc-00-ca-00")
	s.gets(t, Claim("ninth", pairs(1)))
	s.Release(first)
	s.gets(t, nic) // the other lane is out
	s.Release(second)
	s.gets(t, rdma, "rdma-18-00")
	s.gets(t, first)
}

// Sixteen NICs for eight GPUs: a pair leaves its GPU's second NIC to others.
func TestTwoNICsAGPU(t *testing.T) {
	s := on(t, "dual-rail")
	s.gets(t, Claim("nine", pairs(9)))
	eight := Claim("eight", pairs(8))
	if where, err := s.Allocate(t.Context(), eight); err != nil || where != node || len(Devices(eight)) != 8 {
		t.Fatalf("%q, %v: %q", where, err, Devices(eight))
	}
	rest := Claim("rest", Several(8, plain(machine.KindNIC)))
	if where, err := s.Allocate(t.Context(), rest); err != nil || where != node || len(Devices(rest)) != 8 {
		t.Errorf("the NICs that are left: %q, %v: %q", where, err, Devices(rest))
	}
	s.gets(t, Claim("seventeenth", plain(machine.KindNIC)))
}

// VFs that pairs need go last; without its VF a pair has nothing.
func TestVFs(t *testing.T) {
	s := on(t, "sriov")
	vf := plain(machine.KindVF)
	first := s.gets(t, Claim("first", vf), "vf-18-00-3")
	s.gets(t, Claim("two", Several(2, vf)), "vf-18-00-2", "vf-18-00-1")
	pair := s.gets(t, Claim("pair", pairs(1)), "pair-1b-00-18-00")
	last := s.gets(t, Claim("last", vf))
	s.Release(pair)
	s.gets(t, last, "vf-18-00-0")
	s.gets(t, pair, "pair-9d-00-9a-00")
	s.Release(first)
	s.gets(t, first, "vf-18-00-3")
}

// An RDMA device is any number of claims', as long as they reserve no more than there is.
func TestBandwidthIsReserved(t *testing.T) {
	s := h100(t)
	share := func(capacity ...string) resourceapi.DeviceRequest {
		return Share("r", machine.KindRDMA, capacity...)
	}
	for i := range 4 {
		s.gets(t, Claim(fmt.Sprint("c", i), share("bandwidth=100G")), "rdma-18-00")
	}
	s.gets(t, Claim("next", share("bandwidth=1G")), "rdma-40-00")
	for i := range 100 {
		s.gets(t, Claim(fmt.Sprint("none", i), share()), "rdma-18-00")
	}
	s.gets(t, Claim("too much", share("bandwidth=401G")))
	s.gets(t, Claim("the NIC", plain(machine.KindNIC, at("0000:18:00.0"))))
}

func TestGPUAndNICApart(t *testing.T) {
	const standard = "resource.kubernetes.io/"
	machines := map[string]*Scheduler{}
	for _, test := range []struct {
		machine, attribute string
		want               []string
	}{
		{"dgx-h100", standard + "pcieRoot", []string{"gpu-1b-00", "nic-18-00"}},
		{"dgx-h100", "pcieSwitch", []string{"gpu-1b-00", "nic-18-00"}},
		{"dgx-h100", standard + "numaNode", []string{"gpu-1b-00", "nic-18-00"}},
		{"xe8640", standard + "pcieRoot", []string{"gpu-4e-00", "nic-4d-00"}},
		{"gb200", standard + "pcieRoot", nil}, // GPU and NIC are in PCI domains of their own
		{"gb200", standard + "numaNode", []string{"gpu-0008-01-00", "nic-03-00"}},
		{"nic-only", standard + "numaNode", nil},
	} {
		if machines[test.machine] == nil {
			machines[test.machine] = on(t, test.machine)
		}
		s := machines[test.machine]
		s.Release(s.gets(t, Match(Claim("apart", plain(machine.KindGPU), plain(machine.KindNIC)), test.attribute), test.want...))
	}
}

// Once the NICs next to the first GPUs are out, GPU and NIC are found on another switch.
func TestApartFindsTheNextSwitch(t *testing.T) {
	s := h100(t)
	s.gets(t, Claim("NICs", Several(3, plain(machine.KindNIC))), "nic-18-00", "nic-40-00", "nic-4f-00")
	s.gets(t, Match(Claim("apart", plain(machine.KindGPU), plain(machine.KindNIC)), "pcieSwitch"), "gpu-61-00", "nic-5e-00")
	s.gets(t, Claim("pair", pairs(1)), "pair-9d-00-9a-00")
}

// A pair is passed over when its NIC is sick, and its GPU alone is not.
func TestSickNIC(t *testing.T) {
	m := simulatortest.Describe(t, "dgx-h100")
	m.NIC(machine.Address{Bus: 0x18}).Health = machine.Health{Reason: machine.FaultLinkDown, Message: "no link"}
	s := New()
	s.Publish(node, catalog.Build(m, catalog.Options{}))
	s.gets(t, Claim("pair", pairs(1)), "pair-43-00-40-00")
	s.gets(t, Claim("GPU", plain(machine.KindGPU)), "gpu-1b-00")
	s.gets(t, Claim("NIC", plain(machine.KindNIC)), "nic-4f-00")
}

// The nearest pairs come first, and a claim can insist.
func TestNearestFirst(t *testing.T) {
	s := on(t, "xe8640")
	near := plain(machine.KindPair, `device.attributes["dovetail.dev"].closeness in ["PIX", "PXB"]`)
	s.gets(t, Claim("any", pairs(1)), "pair-4e-00-4d-00")
	s.gets(t, Claim("near", near))
	s.gets(t, Claim("others", pairs(3)), "pair-65-00-4d-00", "pair-cd-00-4d-00", "pair-e4-00-4d-00")
}
