package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// network is what the administrator says of node-2 in TestOtherNICs: of a virtual machine
// which GPUs and NICs are next to each other, and of a NIC that there shall be virtual
// functions.
var network = []map[string]any{{
	"nodes": []string{node2},
	"pairs": []map[string]string{
		{"gpu": "0000:00:04.0", "nic": "0000:00:0a.0"},
		{"gpu": "0000:00:05.0", "nic": "0000:00:0b.0"},
		{"gpu": "0000:00:06.0", "nic": "0000:00:1f.0"}, // there is none
	},
	"virtualFunctions": []map[string]any{{"nic": "0000:18:00.0", "count": 4}},
}}

// TestOtherNICs is about machines whose NICs are shared, divided, or of no known place.
func TestOtherNICs(t *testing.T) {
	e := alone(t)
	e.agentBack(node2)
	with := harness.Values{"network": network}
	for name, value := range values {
		with[name] = value
	}
	e.must(e.Install(e.ctx, with))
	e.rolledOut()
	e.afterwards(func() {
		e.must(e.Install(e.ctx, values))
		e.rolledOut()
	})
	e.afterwards(func() {
		e.swapMachine(node2, machines[node2].description)
		_, err := e.WaitGPUs(e.ctx, node2, machines[node2].gpus)
		e.must(err)
	})
	for _, test := range []struct {
		machine string
		gpus    int
		do      func(*env)
	}{
		{"flat-vm", 4, declaredPairs}, {"hgx-4nic", 8, sharedNICs}, {"sriov", 2, virtualFunctions},
	} {
		e.swapMachine(node2, test.machine)
		_, err := e.WaitGPUs(e.ctx, node2, test.gpus)
		e.must(err)
		t.Run(test.machine, func(t *testing.T) { test.do(alone(t)) })
	}
}

// declaredPairs: where the machine hides what is next to what, the administrator's word
// counts, and NCCL is told. What he says of devices that there are not is a fault.
func declaredPairs(e *env) {
	e.apply(template("declared", `{deviceClassName: pair.dovetail.dev, count: 2, selectors: [{cel: {expression: 'device.attributes["dovetail.dev"].closeness == "declared"'}}]}`))
	e.pod("train", on(node2), fromTemplate("declared"))
	var names []string
	for _, pair := range e.verify("train") {
		names = append(names, pair.Name)
	}
	slices.Sort(names)
	if want := []string{"pair-00-04-00-0a", "pair-00-05-00-0b"}; !slices.Equal(names, want) {
		e.Errorf("declared pairs are %q, want %q", names, want)
	}
	r, err := e.Seen(e.ctx, e.namespace, "train", "main")
	e.must(err)
	if r.Env["NCCL_TOPO_FILE"] == "" {
		e.Errorf("NCCL is not told where GPUs and NICs sit: %v", r.Env)
	}
	e.nodeEvent(node2, "DeviceFault", "0000:00:1f.0", "pairs[2].nic", "correct it")
	e.metric(node2, `dovetail_device_fault{device="0000:00:1f.0",reason="`+string(machine.FaultUndeclared)+`"}`, "1")
	e.apply(template("other", gpuRequest))
	e.pod("other", on(node2), fromTemplate("other"))
	e.verify("other")
}

// sharedNICs: where two GPUs have one NIC, their pairs get its RDMA device, and the
// interface stays with the host. Who asks for virtual functions of a card without is told.
func sharedNICs(e *env) {
	e.apply(template("one", pairsOf(1)))
	for i := range 2 {
		e.pod(fmt.Sprintf("pair-%d", i), on(node2), fromTemplate("one"))
	}
	first, second := e.verify("pair-0")[0], e.verify("pair-1")[0]
	e.attribute(first, "rdmaDevice", *second.Attributes["rdmaDevice"].StringValue)
	if *first.Attributes["uuid"].StringValue == *second.Attributes["uuid"].StringValue {
		e.Errorf("%s and %s have one GPU", first.Name, second.Name)
	}
	e.toldNICs("pair-0", false)
	e.onHost(node2, first)
	nic := *first.Attributes["ifName"].StringValue
	for _, class := range []string{"nic", "rdma"} {
		e.apply(choosing(class, class+".dovetail.dev", `device.attributes["dovetail.dev"].ifName == "`+nic+`"`))
		e.pod(class, on(node2), fromTemplate(class))
		e.event(class, "FailedScheduling", "cannot allocate all claims")
	}
	agree(e.T)
	e.gone("nic")
	e.gone("pair-0")
	e.gone("pair-1")
	e.verify("rdma")
	e.gone("rdma")
	e.apply(template("eight", pairsOf(8)))
	e.pod("all", on(node2), fromTemplate("eight"))
	e.count(e.verify("all"), 8)
	e.nodeEvent(node2, "DeviceFault", "0000:18:00.0", "virtualFunctions[0].count: 4", "SR-IOV", "firmware")
}

// virtualFunctions: a NIC that has any stays with the host, and they are claimed one by
// one; a pair has the one of its lane.
func virtualFunctions(e *env) {
	e.apply(choosing("pair", "pair.dovetail.dev", `device.attributes["dovetail.dev"].nicPciBusID == "0000:18:00.1"`))
	e.apply(template("one", "{deviceClassName: vf.dovetail.dev}"))
	e.apply(template("named", "{deviceClassName: nic.dovetail.dev, selectors: [{cel: {expression: 'device.attributes[\"dovetail.dev\"].physicalFunction == \"0000:18:00.0\"'}}]}"))
	e.pod("pair", on(node2), containers("main", "second"), fromTemplate("pair"))
	pair := e.verify("pair")[0]
	e.toldNICs("pair", true)
	held := map[string]bool{}
	for i := range 3 {
		pod := fmt.Sprintf("vf-%d", i)
		e.pod(pod, on(node2), fromTemplate("one"))
		vf := e.verify(pod)[0]
		if held[vf.Name] || !strings.HasPrefix(vf.Name, "vf-18-00-") {
			e.Errorf("%s has %s, and held are %v", pod, vf.Name, held)
		}
		held[vf.Name] = true
	}
	for _, name := range []string{"one", "named"} {
		e.pod("more-"+name, on(node2), fromTemplate(name))
		e.event("more-"+name, "FailedScheduling", "cannot allocate all claims")
	}
	agree(e.T)
	e.restartContainers("pair")
	e.verify("pair")
	e.gone("pair")
	e.attribute(e.verify("more-one")[0], "ifName", *pair.Attributes["ifName"].StringValue)
}
