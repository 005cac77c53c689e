// Package guest has the tests that run inside the virtual machine, as root, on a
// kernel that is theirs alone: they move its NICs about and take them away.
//
//	make vm
package guest

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// TestMain refuses to run anywhere else.
func TestMain(m *testing.M) {
	const mark = "fakeroce "
	if modules, err := os.ReadFile("/proc/modules"); err != nil || !bytes.Contains(modules, []byte("\n"+mark)) && !bytes.HasPrefix(modules, []byte(mark)) {
		fmt.Fprintln(os.Stderr, "these tests run in a virtual machine, and would do harm elsewhere: make vm")
		os.Exit(1)
	}
	if os.Getenv(podMark) != "" {
		bePod()
	}
	if err := setUp(); err != nil {
		fmt.Fprintln(os.Stderr, "set-up:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
