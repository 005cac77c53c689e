package description

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// maxMinor: 254 and 255 of the major are nvidia-modeset and nvidiactl.
const maxMinor = 253

var (
	uuidForm   = regexp.MustCompile(`^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	fabricForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	rootForm   = regexp.MustCompile(`^pci[0-9a-f]{4}:[0-9a-f]{2}$`)
)

// checkAbove wants "pci0000:15/0000:15:01.0/…".
func checkAbove(above string) error {
	root, ports, _ := strings.Cut(above, "/")
	if !rootForm.MatchString(root) {
		return fmt.Errorf("%q does not begin with a root such as pci0000:15", above)
	}
	if ports == "" {
		return nil
	}
	for port := range strings.SplitSeq(ports, "/") {
		if _, err := machine.ParseAddress(port); err != nil {
			return err
		}
	}
	return nil
}

// numberMinors gives the GPUs that have no minor number the lowest free ones.
func numberMinors(gpus []simulator.GPUSpec) {
	taken := map[int]bool{}
	for _, g := range gpus {
		taken[g.Minor] = true
	}
	next := 0
	for i := range gpus {
		if gpus[i].Minor >= 0 {
			continue
		}
		for taken[next] {
			next++
		}
		gpus[i].Minor = next
		taken[next] = true
	}
}

// clashes finds what two GPUs cannot share, and ports with two places.
func clashes(gpus []simulator.GPUSpec) []error {
	var problems []error
	seen := map[string]machine.Address{}
	once := func(what, value string, g machine.Address) {
		if other, ok := seen[what+value]; ok {
			problems = append(problems, fmt.Errorf("gpus: %s and %s have the same %s %s: change one", other, g, what, value))
			return
		}
		seen[what+value] = g
	}
	parents := map[string]string{}
	for _, g := range gpus {
		once("address", g.Address.String(), g.Address)
		once("uuid", g.UUID, g.Address)
		once("minor", fmt.Sprint(g.Minor), g.Address)
		for i, port := range g.Above[1:] {
			if parent, ok := parents[port]; ok && parent != g.Above[i] {
				problems = append(problems, fmt.Errorf("gpus: port %s is below both %s and %s: change one of the above fields",
					port, parent, g.Above[i]))
			}
			parents[port] = g.Above[i]
		}
	}
	for _, g := range gpus {
		if _, ok := parents[g.Address.String()]; ok {
			problems = append(problems, fmt.Errorf("gpus: %s is a GPU and a port above another one: change one", g.Address))
		}
	}
	return problems
}
