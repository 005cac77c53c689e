package guest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// TestMachine: the guest is the machine that the topology describes.
func TestMachine(t *testing.T) {
	for _, n := range topology.NICs {
		if interfaceOf(t, n) == "" {
			t.Errorf("no interface has the address of %s (%s)", n.Name, n.MAC)
		}
	}
}

func interfaceOf(t *testing.T, n topology.NIC) string {
	t.Helper()
	files, err := filepath.Glob("/sys/class/net/*/address")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if mac, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(mac)) == n.MAC {
			return filepath.Base(filepath.Dir(file))
		}
	}
	return ""
}
