package e2e

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// pairTests are claims for pairs, each beside the others.
var pairTests = []claimTest{
	{"one", template("one", pairsOf(1)), func(e *env) {
		e.pod("train", on(node1), fromTemplate("one"))
		pair := e.verify("train")[0]
		e.attribute(pair, "closeness", "PIX")
		e.toldNICs("train", true)
	}},
	{"as the claim says", configuredPair("one", pairsOf(1), `
            gpu: {computeMode: ExclusiveProcess},
            nic: {interfaceName: rail0, mtu: 4200, addresses: [10.77.0.8/16], trafficClass: 106}`), func(e *env) {
		e.pod("train", on(node1), fromTemplate("one"))
		pair := e.verify("train")[0]
		e.toldNICs("train", true)
		if gpu := e.byName(node1, pair); gpu.ComputeMode != machine.ComputeModeExclusiveProcess {
			e.Errorf("the GPU of %s is in compute mode %s", pair.Name, gpu.ComputeMode)
		}
		if r, err := e.Seen(e.ctx, e.namespace, "train", "main"); err != nil || r.Env["NCCL_IB_TC"] != "106" {
			e.Errorf("NCCL_IB_TC is %q, %v", r.Env["NCCL_IB_TC"], err)
		}
	}},
	{"two of one NUMA node, a container each", twoOf(pairRequest, pairRequest, "matchAttribute: resource.kubernetes.io/numaNode"), func(e *env) {
		e.pod("train", on(node1), containers("main", "second"), fromTemplate("two"), only("main", "a", "two"), only("second", "b", "two"))
		e.count(e.verify("train"), 2)
	}},
}

func TestPairs(t *testing.T) { sideBySide(t, nil, pairTests) }

// TestAllPairs: one claim has all eight, and a ninth waits; so it does with two Pods of
// four each, until one of them leaves.
func TestAllPairs(t *testing.T) {
	e := alone(t)
	e.apply(template("one", pairsOf(1)))
	e.apply(template("four", pairsOf(4)))
	e.apply(template("eight", pairsOf(8)))
	e.pod("all", on(node1), fromTemplate("eight"))
	e.onRails(e.verify("all"), 8)
	e.toldNICs("all", true)
	e.pod("ninth", on(node1), fromTemplate("one"))
	e.event("ninth", "FailedScheduling", "cannot allocate all claims")
	agree(t)
	e.gone("ninth")
	e.gone("all")

	e.pod("first", on(node1), fromTemplate("four"))
	e.pod("second", on(node1), fromTemplate("four"))
	e.onRails(append(e.verify("first"), e.verify("second")...), 8)
	for _, class := range []string{"pair", "gpu", "nic"} {
		name := "ninth-" + class
		e.apply(template(name, "{deviceClassName: "+class+".dovetail.dev}"))
		e.pod(name, on(node1), fromTemplate(name))
		e.event(name, "FailedScheduling", "cannot allocate all claims")
	}
	agree(t)
	e.gone("first")
	e.verify("ninth-pair")
	e.verify("ninth-gpu")
	e.verify("ninth-nic")
	e.verify("second")
	agree(t)
}

// onRails: the pairs are of as many rails.
func (e *env) onRails(pairs []resourceapi.Device, count int) {
	e.Helper()
	e.count(pairs, count)
	rails := map[int64]string{}
	for _, p := range pairs {
		rail := *p.Attributes["rail"].IntValue
		if other, taken := rails[rail]; taken {
			e.Errorf("%s and %s are both of rail %d", other, p.Name, rail)
		}
		rails[rail] = p.Name
	}
}

// pairsOf is the body of a request for as many pairs, which must be next to each other.
func pairsOf(count int) string {
	return selected(fmt.Sprintf("{deviceClassName: pair.dovetail.dev, count: %d}", count), `device.attributes["dovetail.dev"].closeness in ["PIX", "PXB"]`)
}

// configuredPair is a template with one request, and with fields of a PairConfig.
func configuredPair(name, body, fields string) string {
	return template(name, body) + configuring(config("PairConfig", fields))
}
