package e2e

import "testing"

// TestBadNICs: what a NIC cannot be is refused, with field, value and cure.
func TestBadNICs(t *testing.T) {
	const nic, rdma = nicRequest, "{deviceClassName: rdma.dovetail.dev}"
	tests := []struct {
		name, body, fields string
		words              []string
	}{
		{"name too long", nic, "interfaceName: sixteen-letters0", []string{"interfaceName", `"sixteen-letters0"`, "16 bytes", "at most 15: shorten it"}},
		{"MTU beyond all", nic, "mtu: 65536", []string{"mtu", "65536", "65535"}},
		{"no CIDR", nic, "addresses: [10.77.0.7]", []string{"addresses[0]", `"10.77.0.7"`, "want an address with its prefix"}},
		{"a next hop off the link", nic, "addresses: [10.77.0.7/16], routes: [{to: 10.79.0.0/16, via: 10.78.0.1}]",
			[]string{"routes[0].via", `"10.78.0.1"`}},
		{"two interfaces of one name", "{deviceClassName: nic.dovetail.dev, count: 2}", "interfaceName: rail0", []string{"interfaceName: rail0", "several devices"}},
		{"what stays with the host", rdma, "mtu: 4200", []string{"mtu: 4200", "stays with the host", "claim nic.dovetail.dev"}},
		{"lossless", nic, "requireLossless: true", []string{"requireLossless: true", "nic-", "priority flow control for no priority", `attributes["dovetail.dev"].lossless`}},
		{"unknown field", nic, "interface: rail0", []string{`unknown field "interface"`, "correct or remove the field"}},
	}
	all := []claimTest{
		{"another device's kind", configuredShare("bad", nic, "computeMode: ExclusiveProcess"), func(e *env) {
			e.pod("train", on(node1), fromTemplate("bad"))
			e.prepareFailed("train", "GPUConfig", "NICConfig")
		}},
		{"a name that the Pod has", configuredNIC("bad", nic, "interfaceName: eth0"), func(e *env) {
			e.pod("train", on(node1), fromTemplate("bad"))
			e.event("train", "Failed", "interfaceName", "eth0")
		}},
	}
	for _, test := range tests {
		all = append(all, refused(test.name, configuredNIC("bad", test.body, test.fields), test.words...))
	}
	sideBySide(t, unchecked, all)
}
