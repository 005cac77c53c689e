package e2e

import (
	"fmt"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

// TestChangedByHand: people change hardware by hand under claims, and then the agent is
// replaced, which knows no more than what is on record. No claim is given what another one
// has, others are given what is free, and all is as before in the end.
func TestChangedByHand(t *testing.T) {
	e := alone(t)
	e.otherMachine(node2, "sriov")
	_, err := e.WaitGPUs(e.ctx, node2, 2)
	e.must(err)
	for _, test := range []struct {
		name string
		do   func(*env)
	}{
		{"VFs of a NIC that is shared", vfsOfASharedNIC}, {"a VF removed", vfRemoved},
		{"the default route of a pair", defaultRouteOfAPair}, {"partitions of a whole GPU", partitionsOfAWholeGPU},
	} {
		t.Run(test.name, func(t *testing.T) { test.do(alone(t)) })
	}
}

// plain is a NIC of that machine without VFs, of which it can have 64; divided has 4.
const (
	plain, plainLabel     = "0000:9a:00.0", "9a-00"
	divided, dividedLabel = "0000:18:00.0", "18-00"
)

// atFunction is a template of a class's device of that NIC.
func atFunction(name, class, nic string) string {
	return choosing(name, class+".dovetail.dev", fmt.Sprintf(`device.attributes["dovetail.dev"].physicalFunction == %q`, nic))
}

// newAgent replaces the agent of the second node.
func (e *env) newAgent() {
	e.Helper()
	_, err := e.RestartAgent(e.ctx, node2)
	e.must(err)
}

// remnant waits until a device of the second node is what is left of a claim's.
func (e *env) remnant(device string) {
	e.Helper()
	e.waits(node2, device, "for its claim alone", func(d resourceapi.Device, there bool) bool { return there && taintedWith(d, "dovetail.dev/leaving") })
}

// present waits until devices of the second node are there for everybody.
func (e *env) present(devices ...string) {
	e.Helper()
	for _, device := range devices {
		e.waits(node2, device, "for everybody", func(d resourceapi.Device, there bool) bool { return there && len(d.Taints) == 0 })
	}
}

// waitsFor creates a Pod that the scheduler has to keep waiting.
func (e *env) waitsFor(pod, manifest string) {
	e.Helper()
	e.apply(manifest)
	e.pod(pod, on(node2), fromTemplate(pod))
	e.event(pod, "FailedScheduling", "cannot allocate all claims")
}

func vfsOfASharedNIC(e *env) {
	e.apply(atFunction("shared", "rdma", plain))
	e.apply(template("gpu", gpuRequest))
	e.pod("first", on(node2), fromTemplate("shared"))
	e.verify("first")
	check := e.undisturbed("first")
	e.sim(node2, "nics", "vfs", plain, "40")
	e.afterwards(func() { e.sim(node2, "nics", "vfs", plain, "0") })
	e.newAgent()
	e.pod("second", on(node2), fromTemplate("shared"))
	e.verify("second")
	e.pod("beside", on(node2), fromTemplate("gpu"))
	e.verify("beside")
	e.waits(node2, "vf-"+plainLabel+"-0", "for nobody", func(_ resourceapi.Device, there bool) bool { return !there })
	check()
	e.gone("first")
	e.verify("second")
	e.gone("second")
	e.present("vf-"+plainLabel+"-0", "vf-"+plainLabel+"-39")
	e.sim(node2, "nics", "vfs", plain, "0")
	e.present("nic-"+plainLabel, "rdma-"+plainLabel)
}

func vfRemoved(e *env) {
	e.apply(atFunction("train", "vf", divided))
	e.pod("train", on(node2), fromTemplate("train"))
	vf := e.verify("train")[0].Name
	e.sim(node2, "nics", "vfs", divided, "0")
	e.afterwards(func() { e.sim(node2, "nics", "vfs", divided, "4") })
	e.newAgent()
	e.remnant(vf)
	e.waitsFor("other", atFunction("other", "nic", divided))
	e.gone("train")
	e.verify("other")
	e.waits(node2, vf, "no more", func(_ resourceapi.Device, there bool) bool { return !there })
	e.gone("other")
	e.sim(node2, "nics", "vfs", divided, "4")
	e.present(vf, "pair-1b-00-"+dividedLabel)
}

func defaultRouteOfAPair(e *env) {
	e.apply(configuredPair("train", selected(pairRequest, fmt.Sprintf(`device.attributes["dovetail.dev"].nicPciBusID == %q`, plain)), "nic: {keepHostNetwork: true}"))
	e.pod("train", on(node2), fromTemplate("train"))
	pair := e.verify("train")[0]
	check := e.undisturbed("train")
	name := *pair.Attributes["ifName"].StringValue
	shell := func(script string) {
		e.Helper()
		_, err := e.Shell(e.ctx, node2, script)
		e.must(err)
	}
	shell("ip address add 10.81.0.1/16 dev " + name + " && ip link set " + name + " up && ip route add default via 10.81.0.254 dev " + name + " metric 7777")
	home := "ip route delete default metric 7777 2>/dev/null || true; ip address delete 10.81.0.1/16 dev " + name + " 2>/dev/null || true"
	e.afterwards(func() { shell(home) })
	e.remnant(pair.Name)
	e.newAgent()
	e.remnant(pair.Name)
	e.waitsFor("other", choosing("other", "gpu.dovetail.dev", hasUUID(*pair.Attributes["uuid"].StringValue)))
	check()
	shell(home)
	e.present(pair.Name, "nic-"+plainLabel)
	check()
	e.gone("train")
	e.verify("other")
}

func partitionsOfAWholeGPU(e *env) {
	gpu := e.gpu(node2, 0)
	e.apply(byUUID(gpu.Spec.UUID))
	e.pod("train", on(node2), fromTemplate("one"))
	device := e.verify("train")[0].Name
	check := e.undisturbed("train")
	e.sim(node2, "mig", "on", "0")
	e.sim(node2, "mig", "make", "0", "2g.20gb", "--start", "0")
	undo := func() {
		if gpu := e.gpu(node2, 0); len(gpu.Instances) > 0 {
			e.sim(node2, "mig", "destroy", "0", fmt.Sprint(gpu.Instances[0].ID))
			e.sim(node2, "mig", "off", "0")
		}
	}
	e.afterwards(undo)
	e.remnant(device)
	e.newAgent()
	e.remnant(device)
	static := strings.Replace(device, "gpu-", "mig-", 1) + "-2g20gb-0"
	e.waitsFor("other", partition("other", profile("2g.20gb", gpu.Spec.UUID)))
	e.waits(node2, static, "for nobody", func(_ resourceapi.Device, there bool) bool { return !there })
	check()
	e.gone("train")
	e.verify("other")
	e.waits(node2, device, "no more", func(_ resourceapi.Device, there bool) bool { return !there })
	e.gone("other")
	undo()
	e.present(device)
}
