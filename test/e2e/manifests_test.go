package e2e

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// request is one of a claim's.
type request struct {
	name    string
	exactly string // its body
}

// Bodies of requests for one device.
const (
	gpuRequest  = "{deviceClassName: gpu.dovetail.dev}"
	migRequest  = "{deviceClassName: mig.dovetail.dev}"
	nicRequest  = "{deviceClassName: nic.dovetail.dev}"
	pairRequest = "{deviceClassName: pair.dovetail.dev}"
)

// claiming is a ResourceClaimTemplate with these requests. What a claim has beside requests,
// constraint or configuring, can follow it.
func claiming(name string, requests ...request) string {
	text := fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %s}
spec:
  spec:
    devices:
      requests:
`, name)
	for _, r := range requests {
		text += fmt.Sprintf("      - name: %s\n        exactly: %s\n", r.name, r.exactly)
	}
	return text
}

// constraint is one of a claim's.
func constraint(c string) string { return "      constraints:\n      - " + c + "\n" }

// configuring has parameters for the driver, for some requests or for all.
func configuring(parameters string, requests ...string) string {
	entry := "opaque: {driver: dovetail.dev, parameters: " + parameters + "}"
	if len(requests) > 0 {
		entry = "requests: [" + strings.Join(requests, ", ") + "], " + entry
	}
	return "      config:\n      - {" + entry + "}\n"
}

// config are parameters of that kind, with fields.
func config(kind, fields string) string {
	return fmt.Sprintf("{apiVersion: dovetail.dev/v1alpha1, kind: %s, %s}", kind, fields)
}

// template is claiming with one request: exactly is its body.
func template(name, exactly string) string { return claiming(name, request{"gpu", exactly}) }

// twoOf is a template "two" of requests a and b by their bodies; a constraint may be empty.
func twoOf(a, b, under string) string {
	two := claiming("two", request{"a", a}, request{"b", b})
	if under == "" {
		return two
	}
	return two + constraint(under)
}

// selecting is a template "one" of one GPU that the expression is true of.
func selecting(expression string) string { return choosing("one", "gpu.dovetail.dev", expression) }

// choosing is a template of one device of a class that the expression is true of.
func choosing(name, class, expression string) string {
	return template(name, selected("{deviceClassName: "+class+"}", expression))
}

// selected adds a selector to the body of a request.
func selected(body, expression string) string {
	return fmt.Sprintf("%s, selectors: [{cel: {expression: %q}}]}", strings.TrimSuffix(body, "}"), expression)
}

// hasUUID is an expression: the device with that UUID.
func hasUUID(uuid string) string {
	return fmt.Sprintf(`device.attributes["dovetail.dev"].uuid == "%s"`, uuid)
}

// partition is a template of one partition that the expression is true of.
func partition(name, expression string) string { return choosing(name, "mig.dovetail.dev", expression) }

// profile is an expression: partitions of that profile; with a uuid, of that GPU.
func profile(name, parent string) string {
	expression := fmt.Sprintf(`device.attributes["dovetail.dev"].profile == "%s"`, name)
	if parent != "" {
		expression += fmt.Sprintf(` && device.attributes["dovetail.dev"].parentUUID == "%s"`, parent)
	}
	return expression
}

// twoPartitions is a template of two partitions, under a constraint.
func twoPartitions(under string) string {
	one := selected(migRequest, profile("1g.10gb", ""))
	return twoOf(one, one, under)
}

// byUUID asks for one GPU that there is only one of.
func byUUID(uuid string) string { return selecting(hasUUID(uuid)) }

// configured is a template of one GPU with parameters for the driver; with a uuid,
// of that GPU.
func configured(name, uuid, parameters string) string {
	body := gpuRequest
	if uuid != "" {
		body = selected(body, hasUUID(uuid))
	}
	return template(name, body) + configuring(parameters)
}

// exclusive asks for a GPU for one process alone, so that preparing it changes
// hardware.
func exclusive(name, uuid string) string {
	return configured(name, uuid, config("GPUConfig", "computeMode: ExclusiveProcess"))
}

// claimOf makes a template's manifest one of a claim of the same name.
func claimOf(template string) string {
	head, body, _ := strings.Cut(template, "spec:\n  spec:\n")
	head = strings.Replace(head, "ResourceClaimTemplate", "ResourceClaim", 1)
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return head + "spec:\n" + strings.Join(lines, "\n")
}

// limits asks as old Pods do.
func limits(name corev1.ResourceName, count int64) option {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{name: *resource.NewQuantity(count, resource.DecimalSI)}
	}
}

var sharedClaim = claimOf(template("shared", gpuRequest))

// firstAvailable: there is no H200 in the cluster, so the second choice it is.
var firstAvailable = claiming("best") + `      - name: gpu
        firstAvailable:
        - name: h200
          deviceClassName: gpu.dovetail.dev
          selectors:
          - cel: {expression: 'device.attributes["dovetail.dev"].productName.startsWith("NVIDIA H200")'}
        - name: l4
          deviceClassName: gpu.dovetail.dev
          selectors:
          - cel: {expression: 'device.attributes["dovetail.dev"].productName == "NVIDIA L4"'}
`

var sameNUMA = template("four", "{deviceClassName: gpu.dovetail.dev, count: 4}") + constraint("matchAttribute: resource.kubernetes.io/numaNode")

var twoRequests = twoOf(gpuRequest, gpuRequest, "")

// share is the body of a request for a share by MPS; compute is in percent.
func share(memory string, compute int) string {
	return fmt.Sprintf("{deviceClassName: mps.dovetail.dev, capacity: {requests: {memory: %s, compute: %q}}}", memory, fmt.Sprint(compute))
}

// shareOf is share, of the GPU with that UUID.
func shareOf(uuid, memory string, compute int) string {
	return selected(share(memory, compute), hasUUID(uuid))
}

// timeSlice is the body of a request for a time slice.
func timeSlice(memory string) string {
	return "{deviceClassName: timeslice.dovetail.dev, capacity: {requests: {memory: " + memory + "}}}"
}

// configuredShare is a template with one request, and with fields of a GPUConfig.
func configuredShare(name, body, fields string) string {
	return template(name, body) + configuring(config("GPUConfig", fields))
}

// twoShares is a template of two requests, a with 10 percent and b with 20, under a
// constraint: that they are of one GPU, if nothing is said.
func twoShares(under, a, b string) string {
	return twoOf(share(a, 10), share(b, 20), cmp.Or(under, "matchAttribute: dovetail.dev/uuid"))
}

// partitionByMPS is a template of a partition whose processes share it by MPS.
var partitionByMPS = configuredShare("part", selected(migRequest, profile("2g.20gb", "")),
	"sharing: {strategy: MPS, mps: {activeThreadPercentage: 50, memoryLimit: 3Gi}}")
