package admission

import (
	"fmt"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/admission/fleet"
)

// describe is a model and what it has: "2g.35gb (32.25Gi) on H200", "H200 (139.5Gi)".
func describe(m *fleet.Model, name resourceapi.QualifiedName) string {
	has, _ := given(m, name)
	amount := has.String()
	if name == "memory" {
		amount = gibibytes(has)
	}
	for _, shape := range []string{m.Text("profile"), m.Text("partitionClass")} {
		if shape != "" {
			return fmt.Sprintf("%s (%s) on %s", shape, amount, m.Product())
		}
	}
	return fmt.Sprintf("%s (%s)", m.Product(), amount)
}

// gibibytes writes bytes as people do, rounded down to a hundredth, so that asking for
// it works.
func gibibytes(q resource.Quantity) string {
	const gib = 1 << 30
	n := q.Value()
	if n < gib {
		return strconv.FormatInt(n>>20, 10) + "Mi"
	}
	s := fmt.Sprintf("%d.%02d", n/gib, n%gib*100/gib)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + "Gi"
}

// nearestProfile: "; the nearest is 1g.10gb (9.5Gi) on H100". Where the profile's name is none,
// it is the one that is written most alike.
func nearestProfile(partitions []*fleet.Model, profile string) string {
	slices, memory, ok := profileSize(profile)
	apart := func(m *fleet.Model) (int, bool) {
		s, g, readable := profileSize(m.Text("profile"))
		// A slice is some tens of gigabytes of most GPUs; the name's rest does not count.
		return 20*abs(s-slices) + abs(g-memory), readable
	}
	if !ok {
		apart = func(m *fleet.Model) (int, bool) { return distance(m.Text("profile"), profile), true }
	}
	var nearest *fleet.Model
	least := 0
	for _, m := range partitions {
		if d, ok := apart(m); ok && (nearest == nil || d < least) {
			nearest, least = m, d
		}
	}
	if nearest == nil {
		return ""
	}
	return "; the nearest is " + describe(nearest, "memory")
}

// profileSize reads "2g.35gb+me" as 2 and 35.
func profileSize(profile string) (slices, gigabytes int, ok bool) {
	n, err := fmt.Sscanf(profile, "%dg.%dgb", &slices, &gigabytes)
	return slices, gigabytes, n == 2 && err == nil
}

func abs(n int) int { return max(n, -n) }
