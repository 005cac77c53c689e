package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// nic is a node's n-th NIC of those that are offered: node-1's first is its uplink.
func (e *env) nic(node string, n int) simulator.NIC {
	e.Helper()
	state, err := e.Machine(e.ctx, node)
	e.must(err)
	return state.NIC(n + 1)
}

// byFunction is a template "one" of a device of a class, that of a NIC.
func byFunction(class string, nic simulator.NIC) string {
	attribute := `"resource.kubernetes.io"].pciBusID`
	if class == "pair.dovetail.dev" {
		attribute = `"dovetail.dev"].nicPciBusID`
	}
	return choosing("one", class, fmt.Sprintf(`device.attributes[%s == "%s"`, attribute, nic.Spec.Address))
}

// TestNameTaken: while a NIC is in a Pod, somebody else's interface takes its name. The Pod
// stays until that has gone, and an event of its claim says whose it is.
func TestNameTaken(t *testing.T) {
	e := alone(t)
	nic := e.nic(node1, 1)
	name := nic.Spec.Netdevs[0].Name
	e.apply(byFunction("nic.dovetail.dev", nic))
	e.pod("train", fromTemplate("one"))
	e.verify("train")
	claim := e.claimOfPod("train").Name
	_, err := e.Shell(e.ctx, node1, "ip link add "+name+" type veth peer name thief")
	e.must(err)
	remove := func() {
		_, err := e.Shell(e.ctx, node1, "if ip link show thief >/dev/null 2>&1; then ip link delete thief; fi")
		e.must(err)
	}
	e.afterwards(remove)
	e.must(e.Kube.CoreV1().Pods(e.namespace).Delete(e.ctx, "train", metav1.DeleteOptions{}))
	_, err = e.WaitEvent(e.ctx, e.namespace, "ResourceClaim", claim, harness.Event("ReleaseWaits", name))
	e.must(err)
	remove()
	e.must(e.WaitGone(e.ctx, e.namespace, "train"))
}

// TestRoutesComeBack: what an administrator has set up since boot is there again after a
// Pod has had the NIC.
func TestRoutesComeBack(t *testing.T) {
	e := alone(t)
	nic := e.nic(node1, 3)
	name := nic.Spec.Netdevs[0].Name
	e.apply(byFunction("nic.dovetail.dev", nic))
	_, err := e.Shell(e.ctx, node1, `ip link set `+name+` mtu 4200
		ip address add 10.79.0.1/16 dev `+name+`
		ip route add 10.80.0.0/16 via 10.79.0.254 dev `+name+` metric 77
		echo 1 >/proc/sys/net/ipv4/conf/`+name+`/arp_ignore
		echo 2 >/proc/sys/net/ipv6/conf/`+name+`/accept_ra`)
	e.must(err)
	e.afterwards(func() {
		_, err := e.Shell(e.ctx, node1, `echo 0 >/proc/sys/net/ipv4/conf/`+name+`/arp_ignore; echo 1 >/proc/sys/net/ipv6/conf/`+name+`/accept_ra
			ip address delete 10.79.0.1/16 dev `+name+`; ip link set `+name+` mtu `+fmt.Sprint(nic.Spec.Netdevs[0].MTU))
		e.must(err)
	})
	_, err = e.WaitSlices(e.ctx, node1, "the MTU", func(s []*resourceapi.ResourceSlice) bool {
		return *harness.Devices(s)["nic-"+nic.Spec.Address.Label()].Attributes["mtu"].IntValue == 4200
	})
	e.must(err)
	e.pod("train", fromTemplate("one"))
	e.ready("train")
	report, err := e.Seen(e.ctx, e.namespace, "train", "main")
	e.must(err)
	if i := report.Interfaces[name]; i.MTU != 4200 || !slices.Contains(i.Addresses, "10.79.0.1/16") || !slices.Contains(i.Routes, "10.80.0.0/16 via 10.79.0.254") {
		e.Errorf("the Pod has %+v", report.Interfaces)
	}
	e.gone("train")
	is := e.interfaceOf(node1, name)
	if is == nil || is.MTU != 4200 || !is.Up() || !slices.Contains(is.Prefixes(), "10.79.0.1/16") {
		e.Errorf("the node has %+v", is)
	}
	route, err := e.Shell(e.ctx, node1, "ip route show 10.80.0.0/16")
	e.must(err)
	if want := "10.80.0.0/16 via 10.79.0.254 dev " + name + " metric 77"; strings.TrimSpace(route) != want {
		e.Errorf("the node has route %q, want %q", route, want)
	}
	sysctls, err := e.Shell(e.ctx, node1, "cat /proc/sys/net/ipv4/conf/"+name+"/arp_ignore /proc/sys/net/ipv6/conf/"+name+"/accept_ra")
	e.must(err)
	if strings.Join(strings.Fields(sysctls), " ") != "1 2" {
		e.Errorf("arp_ignore and accept_ra are %q, want 1 and 2", sysctls)
	}
}

// TestLinkDown: a NIC whose cable is out is tainted, and its pair is, and they alone; with
// the cable in again they are not. Who holds it is not disturbed.
func TestLinkDown(t *testing.T) {
	e := alone(t)
	nic := e.nic(node1, 4)
	label := nic.Spec.Address.Label()
	_, err := e.Sim(e.ctx, node1, "nics", "down", nic.Spec.Address.String())
	e.must(err)
	e.afterwards(func() { e.linkUp(nic) })
	published := e.tainted(node1, "nic-"+label, true)
	e.nodeEvent(node1, "DeviceFault", nic.Spec.Address.String(), "cable")
	for name, d := range published {
		own := kindOf(d).HasNIC() && *d.Attributes["ifName"].StringValue == nic.Spec.Netdevs[0].Name
		if unhealthy := taintedWith(d, "dovetail.dev/unhealthy"); unhealthy != own {
			t.Errorf("%s has taints %+v", name, d.Taints)
		}
	}
	e.apply(template("seven", pairsOf(7)))
	e.apply(template("one", pairsOf(1)))
	e.pod("seven", on(node1), fromTemplate("seven"))
	e.count(e.verify("seven"), 7)
	e.pod("eighth", on(node1), fromTemplate("one"))
	e.event("eighth", "FailedScheduling")
	e.linkUp(nic)
	e.tainted(node1, "nic-"+label, false)
	e.count(e.verify("eighth"), 1)
	agree(t)
}

func (e *env) linkUp(nic simulator.NIC) {
	e.Helper()
	_, err := e.Sim(e.ctx, node1, "nics", "up", nic.Spec.Address.String())
	e.must(err)
}

// tainted waits until a device is unhealthy, or is not, and returns all of the node's.
func (e *env) tainted(node, device string, want bool) map[string]resourceapi.Device {
	e.Helper()
	slices_, err := e.WaitSlices(e.ctx, node, fmt.Sprintf("%s, unhealthy: %t", device, want), func(s []*resourceapi.ResourceSlice) bool {
		d, ok := harness.Devices(s)[device]
		return ok && taintedWith(d, "dovetail.dev/unhealthy") == want
	})
	e.must(err)
	return harness.Devices(slices_)
}

func taintedWith(d resourceapi.Device, key string) bool {
	return slices.ContainsFunc(d.Taints, func(t resourceapi.DeviceTaint) bool { return t.Key == key })
}

// TestNICUnplugged: a NIC goes between its allocation and its preparation, which says so;
// it stays published, as lost. Plugged in again, it is prepared.
func TestNICUnplugged(t *testing.T) {
	e := alone(t)
	nic := e.nic(node1, 5)
	address, device := nic.Spec.Address.String(), (&machine.NIC{Address: nic.Spec.Address}).Name()
	plug := func() {
		_, err := e.Sim(e.ctx, node1, "nics", "plug", address)
		e.must(err)
	}
	e.allocateByHand(template("held", nicRequest), "held", resourceapi.DeviceRequestAllocationResult{Pool: node1, Device: device})
	_, err := e.Sim(e.ctx, node1, "nics", "unplug", address)
	e.must(err)
	e.afterwards(plug)
	e.tainted(node1, device, true)
	e.pod("train", fromClaim("held"), bound(node1))
	e.prepareFailed("train", device, "no longer on the PCI bus", "delete the Pod")
	e.untouched(node1, e.claimOfPod("train"))
	plug()
	e.tainted(node1, device, false)
	e.verify("train")
	agree(t)
}
