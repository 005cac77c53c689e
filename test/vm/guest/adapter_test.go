package guest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// newAdapter is the adapter as the agent has it. It must leave no file open: one that
// leads to a Pod's namespace would keep the Pod's NICs.
func newAdapter(t *testing.T) *rdma.NICs {
	t.Helper()
	before := openFiles(t)
	t.Cleanup(func() {
		if after := openFiles(t); len(after) > len(before) {
			t.Errorf("files were left open: %v, there were %v", after, before)
		}
	})
	return newNICs(filepath.Join(t.TempDir(), "lock"))
}

// newNICs gives the kernel more time than the agent does: its processor is emulated.
func newNICs(lock string) *rdma.NICs {
	return rdma.New(rdma.Options{LockFile: lock, Patience: patience})
}

// openFiles are this process's, without those of Go's own poller.
func openFiles(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	var found []string
	for _, e := range entries {
		file, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if err == nil && filepath.Dir(file) != "/proc" && file != "anon_inode:[eventpoll]" && file != "anon_inode:[eventfd]" {
			found = append(found, file)
		}
	}
	return found
}

// describe reads all NICs, which must be without a fault, and returns them in the
// topology's order; nil where one is not there.
func describe(t *testing.T, nics *rdma.NICs) (map[string]*machine.NIC, hardware.NICDescription) {
	t.Helper()
	d, err := nics.DescribeNICs(t.Context())
	must(t, err)
	for _, f := range d.Faults {
		t.Errorf("fault: %+v", f)
	}
	if !slices.IsSortedFunc(d.NICs, func(a, b machine.NIC) int { return a.Address.Compare(b.Address) }) {
		t.Errorf("the NICs are not in the order of their addresses")
	}
	found := map[string]*machine.NIC{}
	for i := range d.NICs {
		for _, n := range topology.NICs {
			if d.NICs[i].Address == addresses[n.Name] {
				found[n.Name] = &d.NICs[i]
			}
		}
	}
	return found, d
}

// addresses are the PCI addresses of the topology's NICs, as they were at set-up.
var addresses = map[string]machine.Address{}

func rememberAddresses() error {
	for _, n := range topology.NICs {
		path, err := filepath.EvalSymlinks(filepath.Join("/sys/class/net", n.Name, "device"))
		if err != nil {
			return err
		}
		if addresses[n.Name], err = machine.ParseAddress(filepath.Base(path)); err != nil {
			return err
		}
	}
	return nil
}
