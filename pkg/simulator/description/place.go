package description

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Place is where a device sits. Only the address has to be there.
type Place struct {
	Address string `json:"address"`
	// Above is the way to the device through the PCI tree, with slashes as in
	// sysfs: root, root port, and upstream and downstream port of each switch.
	// Left out, the device sits on the root "pciDDDD:00" of its domain.
	Above string `json:"above,omitempty"`
	// NUMANode is -1, unknown, when left out.
	NUMANode *int `json:"numaNode,omitempty"`
}

var rootForm = regexp.MustCompile(`^pci[0-9a-f]{4}:[0-9a-f]{2}$`)

// parse takes above apart: "pci0000:15/0000:15:01.0/…".
func (p *Place) parse() (address machine.Address, above []string, numaNode int, err error) {
	if address, err = machine.ParseAddress(p.Address); err != nil {
		return address, nil, 0, fmt.Errorf("address: %w", err)
	}
	above = strings.Split(cmp.Or(strings.ToLower(p.Above), fmt.Sprintf("pci%04x:00", address.Domain)), "/")
	if !rootForm.MatchString(above[0]) {
		return address, nil, 0, fmt.Errorf("above: %q does not begin with a root such as pci0000:15", p.Above)
	}
	for _, port := range above[1:] {
		if _, err := machine.ParseAddress(port); err != nil {
			return address, nil, 0, fmt.Errorf("above: %w", err)
		}
	}
	if numaNode = or(p.NUMANode, -1); numaNode < -1 {
		return address, nil, 0, fmt.Errorf("numaNode: %d is out of range: give 0 or more, or -1 for unknown", numaNode)
	}
	return address, above, numaNode, nil
}

// refusal takes down what is wrong with a field.
type refusal func(field, format string, args ...any)

// inOrder are a list's devices in the order of their addresses. Those that build refuses
// are left out.
func inOrder[Device, Spec any](list string, devices []Device, build func(*Device) (Spec, error), address func(Spec) machine.Address, refuse refusal) []Spec {
	var specs []Spec
	for i := range devices {
		spec, err := build(&devices[i])
		if err != nil {
			refuse(fmt.Sprintf("%s[%d]", list, i), "%w", err)
			continue
		}
		specs = append(specs, spec)
	}
	slices.SortStableFunc(specs, func(a, b Spec) int { return address(a).Compare(address(b)) })
	return specs
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
