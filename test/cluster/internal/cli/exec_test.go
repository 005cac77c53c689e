package cli

import (
	"slices"
	"testing"
)

func TestEnvironmentHasEachVariableOnce(t *testing.T) {
	got := environment([]string{"HOME=/h", "KUBECONFIG=/theirs", "KUBECONFIG_X=1"}, "KUBECONFIG=/ours", "NEW=1")
	if want := []string{"HOME=/h", "KUBECONFIG_X=1", "KUBECONFIG=/ours", "NEW=1"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
