package machine

import (
	"fmt"
	"strings"
)

// maxProfileLabel leaves room for the rest of a partition's name in the 63
// characters of a DNS label.
const maxProfileLabel = 24

// partitionName is "mig-1b-00-1g10gb-4": the profile's label, and the placement's
// start last.
func (g *GPU) partitionName(label string, at Placement) string {
	return fmt.Sprintf("%s-%s-%s-%d", KindMIG, g.Address.Label(), label, at.Start)
}

// profileLabels gives each of a GPU's profiles a label of its own, whatever the
// driver calls them. It looks at the profiles alone, so a label stays the same
// whichever partitions exist.
func profileLabels(profiles []MIGProfile) map[*MIGProfile]string {
	labels := make(map[*MIGProfile]string, len(profiles))
	taken := make(map[string]bool, len(profiles))
	for i := range profiles {
		plain := profileLabel(profiles[i].Name)
		label := plain
		for n := 2; taken[label]; n++ {
			label = fmt.Sprintf("%sx%d", plain, n)
		}
		taken[label] = true
		labels[&profiles[i]] = label
	}
	return labels
}

// profileLabel is the profile's name without what a DNS label cannot have:
// "1g.10gb+me.all" is "1g10gbmeall", "1g.24gb-me" is "1g24gb-me". No dash comes
// first or second, which would look like the function of a PCI address.
func profileLabel(name string) string {
	var label strings.Builder
	for _, r := range strings.ToLower(name) {
		letter := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		if label.Len() < maxProfileLabel && (letter || r == '-' && label.Len() > 1) {
			label.WriteRune(r)
		}
	}
	if label.Len() == 0 {
		return "profile"
	}
	return label.String()
}
