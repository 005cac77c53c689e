package kernel_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
)

// A hardware address is set while the link is down, and is kept on the way.
func TestHardwareAddress(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		host, pod := w.opened(t)
		w.addLink(w.host, "eth1", mac)
		l := have(t, host, "eth1")
		must(t, host.SetUp(l.Index, false))
		must(t, host.SetMAC(l.Index, "02:00:00:00:00:99"))
		must(t, host.MoveLink(l.Index, pod, "eth1"))
		if got := have(t, pod, "eth1"); got.MAC != "02:00:00:00:00:99" {
			t.Errorf("%+v", got)
		}
	})
}

func TestDressed(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		w.addLink(w.host, "eth1", mac)
		host, _ := w.opened(t)
		index := dressed(t, host, "eth1").Index
		l := have(t, host, "eth1")
		if !l.Up || !l.Carrier || l.MTU != 9000 || l.MAC != mac || l.MaxMTU != 65535 {
			t.Errorf("%+v", l)
		}
		if got := addresses(t, host, index); !slices.Equal(got, []string{"10.1.0.1/24", "fd00:1::1/64"}) {
			t.Errorf("addresses %q", got)
		}
		want := make([]string, 0, len(routes))
		for _, r := range routes {
			want = append(want, r.To+" "+r.Via)
		}
		slices.Sort(want)
		if got := destinations(t, host, index); !slices.Equal(got, want) {
			t.Errorf("routes %q, want %q", got, want)
		}
		if tables, err := host.DefaultTables(); err != nil || !slices.Contains(tables, unix.RT_TABLE_MAIN) {
			t.Errorf("tables %v, %v", tables, err)
		}
		if err := host.AddAddress(index, "10.1.0.1/24"); !errors.Is(err, unix.EEXIST) {
			t.Errorf("the same address again: %v", err)
		}
	})
}

// TestMove: what is lost on the way, and both ways.
func TestMove(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		w.addLink(w.host, "eth1", mac)
		host, pod := w.opened(t)
		if host.ID() == pod.ID() {
			t.Fatal("two namespaces have one ID")
		}
		index := dressed(t, host, "eth1").Index
		must(t, host.MoveLink(index, pod, "net1"))
		if _, here := link(t, host, "eth1"); here {
			t.Error("it is still on the host")
		}
		l := have(t, pod, "net1")
		if l.Up || l.MTU != 9000 || l.MAC != mac {
			t.Errorf("in the Pod: %+v", l)
		}
		if a, r := addresses(t, pod, l.Index), destinations(t, pod, l.Index); len(a)+len(r) != 0 {
			t.Errorf("in the Pod it has addresses %q, routes %q", a, r)
		}
		dressed(t, pod, "net1")
		must(t, pod.MoveLink(l.Index, host, "eth1"))
		if l := have(t, host, "eth1"); l.Up || len(addresses(t, host, l.Index)) != 0 {
			t.Errorf("back home: %+v", l)
		}
		if err := pod.MoveLink(l.Index, host, "eth1"); !errors.Is(err, unix.ENODEV) {
			t.Errorf("moving what is not there: %v", err)
		}
	})
}

// TestSysctls: a move makes them a new link's.
func TestSysctls(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		w.addLink(w.host, "eth1", mac)
		host, pod := w.opened(t)
		is := func() map[string]int {
			got, err := host.Sysctls(have(t, host, "eth1").Index)
			must(t, err)
			return got
		}
		ofNew := is()
		if ofNew["ipv4/conf/send_redirects"] != 1 || ofNew["ipv6/conf/accept_ra"] != 1 || ofNew["ipv4/conf/arp_announce"] != 0 {
			t.Errorf("a new link's: %v", ofNew)
		}
		want := maps.Clone(ofNew)
		delete(want, "ipv6/conf/accept_ra")
		want["ipv4/conf/arp_announce"] = 2
		must(t, host.SetSysctl("eth1", "ipv6/conf/accept_ra", 0))
		must(t, host.SetSysctl("eth1", "ipv4/conf/arp_announce", 2))
		if got := is(); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if err := host.SetSysctl("eth1", "ipv5/conf/accept_ra", 1); !errors.Is(err, unix.ENOENT) {
			t.Errorf("of another protocol: %v", err)
		}
		must(t, host.MoveLink(have(t, host, "eth1").Index, pod, "net1"))
		must(t, pod.MoveLink(have(t, pod, "net1").Index, host, "eth1"))
		if got := is(); !maps.Equal(got, ofNew) {
			t.Errorf("there and back: %v, want %v", got, ofNew)
		}
	})
}

// TestEachSysctl: each is told under the name by which it is set.
func TestEachSysctl(t *testing.T) {
	k := kerneltest.NewReal(t)
	k.AddVeth(k.HostNamespace, "eth1", mac)
	host, err := k.Host()
	must(t, err)
	defer host.Close()
	index := have(t, host, "eth1").Index
	must(t, k.Inside(k.HostNamespace, func() error {
		for _, name := range kernel.SysctlNames() {
			for _, value := range []int{0, 1} {
				if err := host.SetSysctl("eth1", name, value); err != nil {
					return err
				}
				file, err := os.ReadFile(filepath.Join("/proc/sys/net", filepath.Dir(name), "eth1", filepath.Base(name)))
				if err != nil {
					return err
				}
				if got, err := host.Sysctls(index); err != nil || got[name] != value || strings.TrimSpace(string(file)) != strconv.Itoa(value) {
					t.Errorf("%s is %d, %v, and in its file %s, want %d", name, got[name], err, file, value)
				}
			}
		}
		return nil
	}))
}

// TestTakenNames: where the new name is taken the link has moved under its old one, unless
// that is taken as well.
func TestTakenNames(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		w.addLink(w.host, "eth1", mac)
		w.addLink(w.host, "eth2", "02:00:00:00:00:02")
		w.addLink(w.pod, "net1", "02:00:00:00:00:03")
		host, pod := w.opened(t)
		err := host.MoveLink(have(t, host, "eth1").Index, pod, "net1")
		if moved, there := link(t, pod, "eth1"); !errors.Is(err, unix.EEXIST) || !there || moved.MAC != mac {
			t.Fatalf("%v: %+v", err, moved)
		}
		must(t, host.SetName(have(t, host, "eth2").Index, "eth1"))
		if err := host.MoveLink(have(t, host, "eth1").Index, pod, "net1"); !errors.Is(err, unix.EEXIST) {
			t.Fatal(err)
		}
		second := have(t, host, "eth1")
		must(t, host.MoveLink(second.Index, pod, "dev%d"))
		links, err := pod.Links()
		must(t, err)
		i := slices.IndexFunc(links, func(l kernel.Link) bool { return l.MAC == second.MAC })
		if i < 0 || !strings.HasPrefix(links[i].Name, "dev") {
			t.Fatalf("%+v", links)
		}
		if err := pod.SetName(links[i].Index, "eth1"); !errors.Is(err, unix.EEXIST) {
			t.Errorf("a taken name: %v", err)
		}
	})
}

func TestDownLosesRoutes(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		w.addLink(w.host, "eth1", mac)
		host, _ := w.opened(t)
		index := dressed(t, host, "eth1").Index
		must(t, host.SetUp(index, false))
		if a, r := addresses(t, host, index), destinations(t, host, index); !slices.Equal(a, []string{"10.1.0.1/24"}) || len(r) != 0 {
			t.Errorf("addresses %q, routes %q", a, r)
		}
		if err := host.AddRoute(index, routes[0]); !errors.Is(err, unix.ENETDOWN) {
			t.Errorf("a route through what is down: %v", err)
		}
	})
}

func TestWithoutDCB(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		w.addLink(w.host, "eth1", mac)
		host, _ := w.opened(t)
		if _, err := host.DCB("eth1"); !errors.Is(err, unix.EOPNOTSUPP) {
			t.Errorf("DCB of an interface without: %v", err)
		}
	})
}

func TestOthers(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		others := w.Others()
		if len(others) != 1 || !strings.HasSuffix(others[0], w.pod) {
			t.Errorf("others %q, want %q", others, w.pod)
		}
		if _, err := w.Open("/nonexistent"); !errors.Is(err, unix.ENOENT) {
			t.Errorf("a namespace that is not there: %v", err)
		}
	})
}

// TestNotANamespace: a file that was left where a namespace was mounted.
func TestNotANamespace(t *testing.T) {
	path := t.TempDir() + "/left"
	must(t, os.WriteFile(path, nil, 0o600))
	if _, err := (&kernel.Linux{}).Open(path); !errors.Is(err, unix.ENOENT) {
		t.Errorf("%v", err)
	}
}

// TestNothingLeftOpen: sockets and threads are given back.
func TestNothingLeftOpen(t *testing.T) {
	k := kerneltest.NewReal(t)
	pod := k.Namespace("pod")
	count := func(dir string) int {
		entries, err := os.ReadDir(dir)
		must(t, err)
		return len(entries)
	}
	visit := func() {
		n, err := k.Open(pod)
		must(t, err)
		_, err = n.Links()
		must(t, err)
		_, err = n.RDMADevices()
		must(t, err)
		must(t, n.Close())
	}
	visit()
	files, threads := count("/proc/self/fd"), count("/proc/self/task")
	for range 200 {
		visit()
	}
	if now := count("/proc/self/fd"); now > files {
		t.Errorf("%d files are open, before it were %d", now, files)
	}
	if now := count("/proc/self/task"); now > threads+20 {
		t.Errorf("%d threads, before it were %d", now, threads)
	}
}
