package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/parameters"
	"github.com/dovetail-dra/dovetail/pkg/plan"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/test/harness/seen"
)

// nicExpectation is what a container should see of NICs.
type nicExpectation struct {
	// nodes in /dev/infiniband, and the numbers of verbs that can be opened.
	nodes []string
	verbs []int
	// hcas are values of NCCL_IB_HCA, one for each claim with NICs: that of the last
	// one counts.
	hcas []string
	// interfaces beside the Pod's own; nil for a Pod on the host's network, which has
	// the host's. Those in others come with other containers, before this one or after.
	interfaces, others map[string]seen.Interface
	// network is what the metadata say of a device's interface, by its name.
	network map[string]*resourceapi.NetworkDeviceData
}

// kindOf is a device's type.
func kindOf(d resourceapi.Device) machine.Kind {
	return machine.Kind(*d.Attributes["type"].StringValue)
}

// functionOf is the PCI function that comes with a device.
func functionOf(d resourceapi.Device, state *simulator.State) (simulator.Function, error) {
	name := d.Attributes["resource.kubernetes.io/pciBusID"].StringValue
	if kindOf(d) == machine.KindPair {
		name = d.Attributes["nicPciBusID"].StringValue
	}
	for _, f := range state.Functions() {
		if f.Address.String() == *name {
			return f, nil
		}
	}
	return simulator.Function{}, fmt.Errorf("%s is of PCI function %s, which the machine does not have", d.Name, *name)
}

// nicName is what the NIC, or the virtual function, of a device is called.
func nicName(f simulator.Function) string {
	if f.VF < 0 {
		return "nic-" + f.Address.Label()
	}
	return fmt.Sprintf("vf-%s-%d", f.NIC.Spec.Address.Label(), f.VF)
}

// addNIC adds a device's NIC.
func (x *expectation) addNIC(device resourceapi.Device, state *simulator.State) error {
	f, err := functionOf(device, state)
	if err != nil {
		return err
	}
	x.env["DOVETAIL_"+strings.ToUpper(strings.ReplaceAll(nicName(f), "-", "_"))] = f.RDMA
	x.nic.nodes = append(append(x.nic.nodes, "rdma_cm"), f.Nodes()...)
	x.nic.verbs = append(x.nic.verbs, f.Verbs)
	return nil
}

// withNetwork adds what a container should see of its Pod's network, and what it is told
// of its claims' NICs.
func (e *env) withNetwork(x *expectation, pod *corev1.Pod, container corev1.Container, published map[string]resourceapi.Device, state *simulator.State) {
	e.Helper()
	claims, err := e.Claims(e.ctx, pod)
	e.must(err)
	x.nic.network = map[string]*resourceapi.NetworkDeviceData{}
	if !pod.Spec.HostNetwork {
		x.nic.interfaces, x.nic.others = map[string]seen.Interface{}, map[string]seen.Interface{}
	}
	for name, claim := range claims {
		var hcas []string
		for _, r := range claim.Status.Allocation.Devices.Results {
			device, ok := published[r.Device]
			if !ok || !kindOf(device).HasNIC() {
				continue
			}
			f, err := functionOf(device, state)
			e.must(err)
			if !slices.Contains(hcas, f.RDMA) {
				hcas = append(hcas, f.RDMA)
			}
			is := e.inPod(claim, r.Request, device, f)
			if is == nil {
				continue
			}
			x.nic.network[device.Name] = is.told()
			switch own := slices.ContainsFunc(x.devices, func(d resourceapi.Device) bool { return d.Name == device.Name }); {
			case pod.Spec.HostNetwork:
			case own:
				x.nic.interfaces[is.name] = is.Interface
			default:
				x.nic.others[is.name] = is.Interface
			}
		}
		if len(hcas) > 0 && slices.ContainsFunc(container.Resources.Claims, func(c corev1.ResourceClaim) bool { return c.Name == name }) {
			x.nic.hcas = append(x.nic.hcas, "="+strings.Join(hcas, ","))
		}
	}
	slices.Sort(x.nic.nodes)
	x.nic.nodes = slices.Compact(x.nic.nodes)
	slices.Sort(x.nic.verbs)
	x.nic.verbs = slices.Compact(x.nic.verbs)
}

// moved is an interface in a Pod.
type moved struct {
	name string
	seen.Interface
}

func (m *moved) told() *resourceapi.NetworkDeviceData {
	return &resourceapi.NetworkDeviceData{InterfaceName: m.name, HardwareAddress: m.MAC, IPs: m.Addresses}
}

// inPod is how a device's interface should be in the Pod that has it; nil where it stays
// with the host.
func (e *env) inPod(claim *resourceapi.ResourceClaim, request string, device resourceapi.Device, f simulator.Function) *moved {
	e.Helper()
	kind := kindOf(device)
	if kind == machine.KindRDMA || kind == machine.KindPair && f.VF < 0 && *device.Attributes["lanes"].IntValue > 1 {
		return nil
	}
	list, err := parameters.Decode(claim.Status.Allocation.Devices.Config)
	e.must(err)
	config, err := list.For(request, parameters.KindFor(kind))
	e.must(err)
	var want plan.NICConfig
	if config != nil {
		want = parameters.Plan(config).NIC
	}
	if want.KeepHost {
		return nil
	}
	host := simulator.NetdevSpec{Name: *device.Attributes["ifName"].StringValue, MTU: 1500, MAC: simulator.MAC(f.NIC.Machine, f.Address, 0)}
	if f.VF < 0 {
		host = f.NIC.Spec.Netdevs[0]
	}
	is := &moved{name: cmp.Or(want.InterfaceName, host.Name), Interface: seen.Interface{
		MAC: host.MAC, MTU: cmp.Or(want.MTU, host.MTU), Up: true, Addresses: host.Addresses,
	}}
	if len(want.Addresses) > 0 {
		is.Addresses = want.Addresses
	}
	return is
}

// compareNICs says in which ways a container sees something else.
func (x expectation) compareNICs(r *seen.Report) []string {
	var found []string
	differ := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if got := slices.Sorted(maps.Keys(r.RDMANodes)); !slices.Equal(got, x.nic.nodes) {
		differ("has RDMA nodes %v, want %v", got, x.nic.nodes)
	}
	for name, number := range r.RDMANodes {
		var n int
		if _, err := fmt.Sscanf(name, "uverbs%d", &n); err == nil && number != fmt.Sprintf("%d:%d", seen.VerbsMajor, seen.VerbsMinor+n) {
			differ("%s has number %s", name, number)
		}
	}
	if !slices.Equal(r.VerbsOpened, x.nic.verbs) {
		differ("may open verbs %v, want %v", r.VerbsOpened, x.nic.verbs)
	}
	if got, told := r.Env["NCCL_IB_HCA"]; told != (len(x.nic.hcas) > 0) || told && !slices.Contains(x.nic.hcas, got) {
		differ("NCCL_IB_HCA is %q, want one of %q", got, x.nic.hcas)
	}
	if x.nic.interfaces == nil {
		return found
	}
	same := func(a, b seen.Interface) bool {
		return a.MAC == b.MAC && a.MTU == b.MTU && a.Up == b.Up && slices.Equal(a.Addresses, b.Addresses)
	}
	got := maps.Clone(r.Interfaces)
	maps.DeleteFunc(got, func(name string, i seen.Interface) bool {
		other, ok := x.nic.others[name]
		return name == "lo" || name == "eth0" || ok && same(i, other)
	})
	if !maps.EqualFunc(got, x.nic.interfaces, same) {
		differ("has network interfaces %+v, want %+v", got, x.nic.interfaces)
	}
	return found
}
