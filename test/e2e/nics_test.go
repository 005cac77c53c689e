package e2e

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/dovetail-dra/dovetail/test/harness"
	"github.com/dovetail-dra/dovetail/test/harness/seen"
)

// nicTests are claims for NICs, each beside the others.
var nicTests = []claimTest{
	{"one NIC", template("one", nicRequest), func(e *env) {
		e.pod("train", on(node1), fromTemplate("one"))
		e.count(e.verify("train"), 1)
		e.toldNICs("train", true)
	}},
	{"as the claim says", configuredNIC("one", nicRequest, `
            interfaceName: rail0,
            mtu: 4200,
            addresses: [10.77.0.7/16, "fd00:77::7/64"],
            routes: [{to: 10.78.0.0/16, via: 10.77.0.1}, {to: 192.0.2.0/24, from: 10.77.0.7, metric: 7}],
            dscp: 26`), func(e *env) {
		e.pod("train", on(node1), fromTemplate("one"))
		e.verify("train")
		e.toldNICs("train", true)
		r, err := e.Seen(e.ctx, e.namespace, "train", "main")
		e.must(err)
		want := []string{"10.77.0.0/16", "10.78.0.0/16 via 10.77.0.1", "192.0.2.0/24"}
		if got := slices.Sorted(slices.Values(r.Interfaces["rail0"].Routes)); !slices.Equal(got, want) || r.Env["NCCL_IB_TC"] != "104" {
			e.Errorf("the Pod has routes %q, want %q, and NCCL_IB_TC is %q", got, want, r.Env["NCCL_IB_TC"])
		}
	}},
	{"for two containers", template("one", nicRequest), func(e *env) {
		e.pod("train", on(node1), containers("main", "second"), fromTemplate("one"))
		e.count(e.verify("train"), 1)
	}},
	{"for one container of two", template("one", nicRequest), func(e *env) {
		e.pod("train", on(node1), containers("main", "second"), fromTemplate("one"), only("second", "", "one"))
		e.count(e.verify("train"), 1)
	}},
	{"a NIC for each container", twoOf(nicRequest, nicRequest, "distinctAttribute: dovetail.dev/ifName"), func(e *env) {
		e.pod("train", on(node1), containers("main", "second"), fromTemplate("two"), only("main", "a", "two"), only("second", "b", "two"))
		e.count(e.verify("train"), 2)
	}},
	{"kept by the host", configuredNIC("one", nicRequest, "keepHostNetwork: true"), func(e *env) {
		e.pod("train", on(node1), fromTemplate("one"))
		device := e.verify("train")[0]
		e.toldNICs("train", false)
		e.onHost(node1, device)
	}},
	{"on the host's network", template("one", nicRequest), func(e *env) {
		e.pod("train", on(node1), fromTemplate("one"), func(p *corev1.Pod) { p.Spec.HostNetwork = true })
		device := e.verify("train")[0]
		e.onHost(node1, device)
	}},
	{"RDMA alone, for two Pods", choosing("one", "rdma.dovetail.dev", `device.attributes["dovetail.dev"].ifName == "enp220s0np0"`), func(e *env) {
		e.pod("first", on(node1), fromTemplate("one"))
		e.pod("second", on(node1), fromTemplate("one"))
		first, second := e.verify("first"), e.verify("second")
		e.attribute(first[0], "rdmaDevice", *second[0].Attributes["rdmaDevice"].StringValue)
		e.toldNICs("first", false)
		e.onHost(node1, first[0])
		e.gone("first")
		e.verify("second")
	}},
	{"beside a GPU on its PCIe root", beside("resource.kubernetes.io/pcieRoot"), func(e *env) { e.besides("resource.kubernetes.io/pcieRoot") }},
	{"beside a GPU on its NUMA node", beside("resource.kubernetes.io/numaNode"), func(e *env) { e.besides("resource.kubernetes.io/numaNode") }},
	{"beside a GPU on its PCIe switch", beside("dovetail.dev/pcieSwitch"), func(e *env) { e.besides("pcieSwitch") }},
}

func TestNICs(t *testing.T) { sideBySide(t, nil, nicTests) }

// configuredNIC is a template with one request, and with fields of a NICConfig.
func configuredNIC(name, body, fields string) string {
	return template(name, body) + configuring(config("NICConfig", fields))
}

// beside is a template of a GPU and a NIC with one value of an attribute.
func beside(attribute string) string {
	return twoOf(gpuRequest, nicRequest, "matchAttribute: "+attribute)
}

func (e *env) besides(attribute resourceapi.QualifiedName) {
	e.Helper()
	e.pod("train", on(node1), fromTemplate("two"))
	devices := e.verify("train")
	e.count(devices, 2)
	if a, b := devices[0].Attributes[attribute], devices[1].Attributes[attribute]; !apiequality.Semantic.DeepEqual(a, b) {
		e.Errorf("%s has %s %v, %s has %v", devices[0].Name, attribute, a, devices[1].Name, b)
	}
}

// toldNICs waits until the status of a Pod's claim tells of its NICs: that they are ready,
// whether their ports lose traffic, and, of those that went into the Pod, what their
// interfaces are there.
func (e *env) toldNICs(pod string, moved bool) {
	e.Helper()
	p := e.ready(pod)
	report, err := e.Seen(e.ctx, e.namespace, pod, p.Spec.Containers[0].Name)
	e.must(err)
	claims := harness.Set{Client: e.Kube.ResourceV1().RESTClient(), Resource: "resourceclaims", Namespace: e.namespace}
	claim := e.claimOfPod(pod)
	var has []resourceapi.AllocatedDeviceStatus
	_, err = harness.WaitOne(e.ctx, claims, claim.Name, "the status of claim "+claim.Name, func(c *resourceapi.ResourceClaim) (bool, error) {
		if c == nil || len(c.Status.Devices) < len(claim.Status.Allocation.Devices.Results) {
			return false, nil
		}
		has = c.Status.Devices
		return true, nil
	})
	e.must(err)
	for _, d := range has {
		// Stand-ins are no hardware: the kernel knows no flow control of theirs.
		lossless := meta.FindStatusCondition(d.Conditions, "Lossless")
		if !meta.IsStatusConditionTrue(d.Conditions, "Ready") || lossless == nil || lossless.Reason != "NoFlowControl" {
			e.Errorf("%s has conditions %+v", d.Device, d.Conditions)
		}
		if (d.NetworkData != nil) != moved {
			e.Errorf("the status of %s has network data %+v, want some: %t", d.Device, d.NetworkData, moved)
		}
		if n := d.NetworkData; n != nil && !sameInterface(n, report.Interfaces) {
			e.Errorf("the status of %s has %+v, and the Pod has %+v", d.Device, n, report.Interfaces)
		}
	}
}

func sameInterface(n *resourceapi.NetworkDeviceData, inPod map[string]seen.Interface) bool {
	is, ok := inPod[n.InterfaceName]
	return ok && is.MAC == n.HardwareAddress && slices.Equal(is.Addresses, n.IPs)
}

// onHost: a device's interface is in the node's own network.
func (e *env) onHost(node string, device resourceapi.Device) {
	e.Helper()
	name := *device.Attributes["ifName"].StringValue
	if i := e.interfaceOf(node, name); i == nil || !i.Up() {
		e.Errorf("%s of %s is not as it should be on %s: %+v", name, device.Name, node, i)
	}
}

// interfaceOf is a node's network interface; nil where it has none of that name.
func (e *env) interfaceOf(node, name string) *harness.Interface {
	e.Helper()
	all, err := e.Interfaces(e.ctx, node)
	e.must(err)
	if i := slices.IndexFunc(all, func(i harness.Interface) bool { return i.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}
