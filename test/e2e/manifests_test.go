package e2e

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// template is a ResourceClaimTemplate with one request: exactly is its body.
func template(name, exactly string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %s}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: %s
`, name, exactly)
}

// selecting is a template "one" of one GPU that the expression is true of.
func selecting(expression string) string { return choosing("one", "gpu.dovetail.dev", expression) }

// choosing is a template of one device of a class that the expression is true of.
func choosing(name, class, expression string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %s}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: %s
          selectors:
          - cel:
              expression: >-
                %s
`, name, class, expression)
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
func twoPartitions(constraint string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two}
spec:
  spec:
    devices:
      requests:
      - name: a
        exactly: {deviceClassName: mig.dovetail.dev, selectors: [{cel: {expression: '%[1]s'}}]}
      - name: b
        exactly: {deviceClassName: mig.dovetail.dev, selectors: [{cel: {expression: '%[1]s'}}]}
      constraints:
      - %[2]s
`, profile("1g.10gb", ""), constraint)
}

// byUUID asks for one GPU that there is only one of.
func byUUID(uuid string) string {
	return selecting(fmt.Sprintf("device.attributes['dovetail.dev'].uuid == '%s'", uuid))
}

// configured is a template of one GPU with parameters for the driver; with a uuid,
// of that GPU.
func configured(name, uuid, parameters string) string {
	selector := "true"
	if uuid != "" {
		selector = fmt.Sprintf("device.attributes['dovetail.dev'].uuid == '%s'", uuid)
	}
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %s}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu.dovetail.dev
          selectors:
          - cel: {expression: "%s"}
      config:
      - opaque:
          driver: dovetail.dev
          parameters: %s
`, name, selector, parameters)
}

// exclusive asks for a GPU for one process alone, so that preparing it changes
// hardware.
func exclusive(name, uuid string) string {
	return configured(name, uuid, "{apiVersion: dovetail.dev/v1alpha1, kind: GPUConfig, computeMode: ExclusiveProcess}")
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

var sharedClaim = claimOf(template("shared", "{deviceClassName: gpu.dovetail.dev}"))

// firstAvailable: there is no H200 in the cluster, so the second choice it is.
const firstAvailable = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: best}
spec:
  spec:
    devices:
      requests:
      - name: gpu
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

const sameNUMA = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: four}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: {deviceClassName: gpu.dovetail.dev, count: 4}
      constraints:
      - matchAttribute: resource.kubernetes.io/numaNode
`

const twoRequests = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two}
spec:
  spec:
    devices:
      requests:
      - name: a
        exactly: {deviceClassName: gpu.dovetail.dev}
      - name: b
        exactly: {deviceClassName: gpu.dovetail.dev}
`

// share is the body of a request for a share by MPS; compute is in percent.
func share(memory string, compute int) string {
	return fmt.Sprintf("{deviceClassName: mps.dovetail.dev, capacity: {requests: {memory: %s, compute: %q}}}", memory, fmt.Sprint(compute))
}

// shareOf is share, of the GPU with that UUID.
func shareOf(uuid, memory string, compute int) string {
	return selected(share(memory, compute), `device.attributes["dovetail.dev"].uuid == "`+uuid+`"`)
}

// selected adds a selector to the body of a request.
func selected(body, expression string) string {
	return strings.TrimSuffix(body, "}") + ", selectors: [{cel: {expression: '" + expression + "'}}]}"
}

// timeSlice is the body of a request for a time slice.
func timeSlice(memory string) string {
	return "{deviceClassName: timeslice.dovetail.dev, capacity: {requests: {memory: " + memory + "}}}"
}

// configuredShare is a template with one request, and with fields of a GPUConfig.
func configuredShare(name, body, fields string) string {
	return template(name, body) + fmt.Sprintf(`      config:
      - opaque:
          driver: dovetail.dev
          parameters: {apiVersion: dovetail.dev/v1alpha1, kind: GPUConfig, %s}
`, fields)
}

// twoShares is a template of two requests, a with 10 percent and b with 20, under a
// constraint: that they are of one GPU, if nothing is said.
func twoShares(constraint, a, b string) string {
	if constraint == "" {
		constraint = "matchAttribute: dovetail.dev/uuid"
	}
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two}
spec:
  spec:
    devices:
      requests:
      - name: a
        exactly: %s
      - name: b
        exactly: %s
      constraints:
      - %s
`, share(a, 10), share(b, 20), constraint)
}

// partitionByMPS is a template of a partition whose processes share it by MPS.
var partitionByMPS = configuredShare("part", selected("{deviceClassName: mig.dovetail.dev}", profile("2g.20gb", "")),
	"sharing: {strategy: MPS, mps: {activeThreadPercentage: 50, memoryLimit: 3Gi}}")
