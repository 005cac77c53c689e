package main

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/nodenetwork"
)

// Environment variables with what there is to say of NICs, for every command in the
// agent's container.
const (
	nicsVariable             = "DOVETAIL_NICS"
	networkNamespaceVariable = "DOVETAIL_NETWORK_NAMESPACE"
	networkConfigVariable    = "DOVETAIL_NETWORK_CONFIG"
	nodeAddressesVariable    = "DOVETAIL_NODE_ADDRESSES"
)

// nics says how NICs are reached, as flags.
type nics struct {
	enabled   string
	namespace string
	config    string
	addresses string
}

func (n *nics) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&n.enabled, "nics", fromEnvironment(nicsVariable, "true"), "offer NICs, and GPUs with the NIC next to them: true or false (default: $"+nicsVariable+", or true)")
	flags.StringVar(&n.namespace, "network-namespace", fromEnvironment(networkNamespaceVariable, ""),
		"file of the network namespace in which the NICs are at home (default: $"+networkNamespaceVariable+", or this process's)")
	flags.StringVar(&n.config, "network-config", fromEnvironment(networkConfigVariable, ""),
		"file that says what is to be known or done about NICs, a NodeNetwork as in docs/nics.md (default: $"+networkConfigVariable+", or none)")
	flags.StringVar(&n.addresses, "node-addresses", fromEnvironment(nodeAddressesVariable, ""),
		"the node's IP addresses, separated by commas; the interface that has one stays with the node, as those with a default route do (default: $"+nodeAddressesVariable+", or none)")
	defaultsInText(flags, "nics", "network-namespace", "network-config", "node-addresses")
}

// open reaches the NICs, and puts wrap round them; nil where they are not wanted.
func (n *nics) open(sysfs, processes, pluginDir string, wrap func(hardware.NICs) hardware.NICs) (hardware.NICs, error) {
	enabled, err := strconv.ParseBool(n.enabled)
	if err != nil {
		return nil, fmt.Errorf("--nics: %q: want true or false", n.enabled)
	}
	if !enabled {
		return nil, nil
	}
	addresses, err := parseAddresses(n.addresses)
	if err != nil {
		return nil, fmt.Errorf("--node-addresses: %w", err)
	}
	return wrap(rdma.New(rdma.Options{
		SysfsRoot: sysfs, ProcRoot: processes, HostNamespace: n.namespace, LockFile: filepath.Join(pluginDir, rdma.LockName),
		NodeAddresses: addresses,
	})), nil
}

// network is what the administrator's file says of a node's.
func (n *nics) network(node string) (machine.Network, error) {
	network, err := nodenetwork.Read(n.config, node)
	if err != nil {
		return network, fmt.Errorf("--network-config: %w", err)
	}
	return network, nil
}

func parseAddresses(text string) ([]netip.Addr, error) {
	var addresses []netip.Addr
	for one := range strings.SplitSeq(text, ",") {
		if one == "" {
			continue
		}
		address, err := netip.ParseAddr(one)
		if err != nil {
			return nil, fmt.Errorf("%q: want IP addresses separated by commas, such as 192.0.2.1,2001:db8::1", one)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}
