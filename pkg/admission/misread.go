package admission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/admission/fleet"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
)

// misread says what the first attribute should be called that no model has: "; the nearest
// attribute is productName, and docs/attributes.md has all". Empty where each has one.
func misread(reads []string, models []*fleet.Model) string {
	var known []string
	for _, m := range models {
		for name := range m.Attributes {
			known = append(known, string(name))
		}
	}
	slices.Sort(known)
	for _, name := range reads {
		if len(known) == 0 || slices.Contains(known, name) {
			continue
		}
		if at := slices.IndexFunc(known, func(k string) bool { return undomained(k) == undomained(name) }); at >= 0 {
			domain, _, found := strings.Cut(known[at], "/")
			if !found {
				domain = catalog.DriverName
			}
			return fmt.Sprintf(": want device.attributes[%q].%s", domain, undomained(name))
		}
		nearest := slices.MinFunc(known, func(a, b string) int { return cmp.Compare(distance(a, name), distance(b, name)) })
		return fmt.Sprintf("; the nearest attribute is %s, and docs/attributes.md has all", nearest)
	}
	return ""
}

// undomained is an attribute's name without its domain.
func undomained(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// distance is how many characters must be put in, taken out or changed to make b of a
// (Levenshtein's).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}
