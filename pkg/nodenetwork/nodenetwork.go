// Package nodenetwork finds what an administrator's file says of the NICs of one node.
package nodenetwork

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Read reads the file; an empty name says nothing of any node. Errors name the file, the
// field, the value, and what would be right.
func Read(file, node string) (machine.Network, error) {
	if file == "" {
		return machine.Network{}, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return machine.Network{}, err
	}
	decoded, err := v1alpha1.DecodeNodeNetwork(content)
	if err != nil {
		return machine.Network{}, fmt.Errorf("%s: %w", file, err)
	}
	network, err := For(decoded, node)
	if err != nil {
		return machine.Network{}, fmt.Errorf("%s: %w", file, err)
	}
	return network, nil
}

// For returns what holds of the node: what the first rule says whose patterns match its
// name, and otherwise nothing. What was validated gives no error.
func For(n *v1alpha1.NodeNetwork, node string) (machine.Network, error) {
	for i := range n.Rules {
		if rule := &n.Rules[i]; matches(rule.Nodes, node) {
			network, err := convert(rule)
			if err != nil {
				return machine.Network{}, fmt.Errorf("rules[%d]: %w", i, err)
			}
			return network, nil
		}
	}
	return machine.Network{}, nil
}

func matches(patterns []string, node string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, node)
		return ok && err == nil
	})
}

func convert(rule *v1alpha1.NodeNetworkRule) (machine.Network, error) {
	var network machine.Network
	var errs []error
	address := func(text, format string, index int) machine.Address {
		a, err := machine.ParseAddress(text)
		if err != nil {
			errs = append(errs, fmt.Errorf(format+": %w", index, err))
		}
		return a
	}
	for i, pair := range rule.Pairs {
		network.Pairs = append(network.Pairs, machine.DeclaredPair{
			GPU: address(pair.GPU, "pairs[%d].gpu", i), NIC: address(pair.NIC, "pairs[%d].nic", i),
		})
	}
	for i, rail := range rule.Rails {
		if network.Rails == nil {
			network.Rails = map[machine.Address]int{}
		}
		network.Rails[address(rail, "rails[%d]", i)] = i
	}
	for i, vfs := range rule.VirtualFunctions {
		network.VFs = append(network.VFs, machine.VFCount{NIC: address(vfs.NIC, "virtualFunctions[%d].nic", i), Count: int(vfs.Count)})
	}
	var err error
	network.Lossless, err = dcb(rule.Lossless)
	return network, errors.Join(append(errs, err)...)
}

// dcb is what ports are to be set to; nil where nothing is said.
func dcb(l *v1alpha1.NodeLossless) (*machine.DCB, error) {
	if l == nil {
		return nil, nil
	}
	wanted := &machine.DCB{}
	for i, priority := range l.PFCPriorities {
		if priority < 0 || int(priority) >= len(wanted.PFC) {
			return nil, fmt.Errorf("lossless.pfcPriorities[%d]: %d: want 0 to 7", i, priority)
		}
		wanted.PFC[priority] = true
	}
	if l.Trust != nil {
		wanted.Trust = machine.Trust(*l.Trust)
	}
	for text, priority := range l.DSCP {
		point, err := strconv.ParseUint(text, 10, 8)
		if err != nil || point > 63 || priority < 0 || priority > 7 {
			return nil, fmt.Errorf("lossless.dscp[%s]: %d: want a code point, 0 to 63, and a priority, 0 to 7", text, priority)
		}
		wanted.DSCP = append(wanted.DSCP, machine.DSCPPriority{DSCP: uint8(point), Priority: uint8(priority)})
	}
	slices.SortFunc(wanted.DSCP, func(a, b machine.DSCPPriority) int { return cmp.Compare(a.DSCP, b.DSCP) })
	return wanted, nil
}
