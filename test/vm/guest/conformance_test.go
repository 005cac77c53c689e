package guest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/hardwaretest"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// TestConformance: the adapter passes the suite that the simulator passes, too.
func TestConformance(t *testing.T) {
	hardwaretest.TestNICs(t, func(t *testing.T) hardwaretest.NICFixture {
		lock := filepath.Join(t.TempDir(), "lock")
		h := &hands{t: t, hook: newNICs(lock), pods: map[string]*pod{}}
		if h.nic = topology.Near; strings.HasSuffix(t.Name(), "/VirtualFunctions") {
			disturbs(t, h.nic)
		} else {
			h.nic = lend(t)
		}
		empty(t, h.nic)
		// Pods are gone before the NIC is put back, and the mode before that.
		t.Cleanup(func() { must(t, h.setExclusive(false)) })
		furnish(t, h.hook, h.nic)
		return hardwaretest.NICFixture{
			NICs: newNICs(lock), NIC: addresses[h.nic.Name],
			Move: h.move, End: h.end, TakeName: h.takeName, GiveName: h.giveName,
			SetLink:      func(there bool) error { return setCable(h.nic, there) },
			Unplug:       func() error { return writeFile("1", "/sys/bus/pci/devices", addresses[h.nic.Name].String(), "remove") },
			Plug:         h.plug,
			SetExclusive: h.setExclusive,
		}
	})
}

// hands are those that the suite changes the machine with.
type hands struct {
	t    *testing.T
	nic  topology.NIC
	hook *rdma.NICs // the move is made by another process than the agent's

	mutex sync.Mutex // guards pods
	pods  map[string]*pod
}

func (h *hands) move(namespace string, order hardware.NICMove) error {
	h.mutex.Lock()
	p := h.pods[namespace]
	if p == nil {
		p = newPod(h.t)
		h.pods[namespace] = p
	}
	h.mutex.Unlock()
	return h.hook.Move(context.Background(), h.hook.Namespace(p.pid), order)
}

func (h *hands) end(namespace string) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if p := h.pods[namespace]; p != nil {
		p.end()
		delete(h.pods, namespace)
	}
	return nil
}

func (h *hands) takeName(name string) error {
	return netlink.LinkAdd(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: name}})
}

func (h *hands) giveName(name string) error {
	l, err := netlink.LinkByName(name)
	if err == nil && l.Type() != "dummy" {
		err = fmt.Errorf("%s is a %s", name, l.Type())
	}
	return errors.Join(err, netlink.LinkDel(l))
}

// plug has the kernel look for the NIC, and gives it what its driver would: an RDMA
// device.
func (h *hands) plug() error {
	if err := writeFile("1", "/sys/bus/pci/rescan"); err != nil {
		return err
	}
	return within(patience, func() error { return goHome(h.nic) })
}

// setExclusive needs all other namespaces to have ended.
func (h *hands) setExclusive(exclusive bool) error {
	for name := range h.pods {
		if err := h.end(name); err != nil {
			return err
		}
	}
	mode := map[bool]string{true: "exclusive", false: "shared"}[exclusive]
	return within(patience, func() error { return netlink.RdmaSystemSetNetnsMode(mode) })
}
