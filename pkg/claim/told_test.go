package claim_test

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// A namespace is not told the names of another's claims; one's own it is.
func TestOtherNamespacesStayUnknown(t *testing.T) {
	turn := func(id string) claimtest.Share {
		return claimtest.Share{Request: "r", Device: "timeslice-1b-00", ID: id, Memory: "1Gi"}
	}
	interval := func(value string) string { return gpuConfig(`"sharing":{"timeSlicing":{"interval":"` + value + `"}}`) }
	for name, test := range map[string]struct {
		first, second func(w *world) *resourceapi.ResourceClaim
	}{
		"a device that is held": {
			func(w *world) *resourceapi.ResourceClaim { return w.allocate("secret", "", "gpu-1b-00") },
			func(w *world) *resourceapi.ResourceClaim { return w.allocate("b", "", "gpu-1b-00") },
		},
		"an interval that is set": {
			func(w *world) *resourceapi.ResourceClaim { return w.share("secret", interval("Long"), turn("1")) },
			func(w *world) *resourceapi.ResourceClaim { return w.share("b", interval("Short"), turn("2")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.prepare(test.first(w))
			second := test.second(w)
			w.refused(second, failure.Conflict, "claim default/secret")
			stranger := second.DeepCopy()
			stranger.Namespace = "other"
			w.must(w.Store(stranger))
			w.refused(stranger, failure.Conflict, "a claim of another namespace (UID uid-secret)")
			if _, err := w.m.Prepare(t.Context(), stranger); err == nil || strings.Contains(err.Error(), "default/") {
				t.Errorf("error %v", err)
			}
		})
	}
}
