package rdma_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
)

// TestSysctls: the host's come home with the NIC, and none that a container has set. Where
// they cannot be written the release waits for who can, but for none that the kernel has no
// more.
func TestSysctls(t *testing.T) {
	w, _ := withPod(t)
	set := func(path, link string, sysctls map[string]int) {
		w.in(path, func(n kernel.Namespace) {
			for name, value := range sysctls {
				must(t, n.SetSysctl(link, name, value))
			}
		})
	}
	hosts := map[string]int{"ipv4/conf/rp_filter": 2, "ipv6/conf/accept_ra": 0}
	set(kerneltest.HostPath, "eth1", hosts)
	home := w.home()
	away := func() {
		must(t, w.move(hardware.NICMove{Home: home, Name: "net1"}))
		set(pod, "net1", map[string]int{"ipv4/conf/rp_filter": 1, "ipv4/conf/accept_local": 1})
	}
	for range 2 {
		away()
		for range 2 {
			must(t, w.bring(home))
			w.atHome(home)
		}
	}
	fail := func(err error) { w.kernel.FailIn(kerneltest.HostPath, "SetSysctl", err) }
	away()
	fail(unix.EROFS)
	err := w.bring(home)
	if !errors.Is(err, failure.Busy) || !strings.Contains(err.Error(), "rp_filter of eth1 was 2 on the host: run `sysctl -w net/ipv4/conf/eth1/rp_filter=2`") {
		t.Errorf("%v", err)
	}
	fail(nil)
	set(kerneltest.HostPath, "eth1", hosts)
	fail(unix.EROFS)
	must(t, w.bring(home))
	w.atHome(home)
	fail(nil)
	away()
	fail(unix.ENOENT)
	must(t, w.bring(home))
}
