package mps_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/cuda"
	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
)

// in is the daemon as clients of a namespace see it.
func (d *daemon) in(server, namespace string) *daemon {
	there := *d
	there.pipe = filepath.Join(d.pipe, server, namespace)
	return &there
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "mps-v3", 0, 1).start("-p", "3", "-m")
	gpus := []string{d.machine.Spec().GPUs[0].UUID, d.machine.Spec().GPUs[1].UUID}
	d.must("server", "create", "shared", "--uid=0")
	d.must("namespace", "create", "small", "--server=shared")
	d.must("namespace", "set", "small", "--server=shared", "--pinned-memory-limit="+gpus[0]+"=4G,"+gpus[1]+"=512M", "--active-thread-percentage=25")
	small := d.in("shared", "small")
	a, b := small.got("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=75"), small.got("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G")
	if got := a.first.MPS; got.Protocol != 3 || got.Namespace != "small" || got.Percentage != 25 || got.Devices[0].NamespaceLimit != 4*gib {
		t.Errorf("a client got %+v", got)
	}
	// The limit is that of all clients together; the environment's is one client's.
	a.do("allocate 0 3G", "")
	b.do("allocate 0 1025M", mps.ErrOutOfMemory)
	b.do("allocate 0 1G", "")
	a.do("allocate 0 1M", mps.ErrOutOfMemory)
	a.do("allocate 1 513M", mps.ErrOutOfMemory)
	// Namespaces do not touch each other.
	rest := d.in("shared", "default").got()
	rest.do("allocate 0 60G", "")
	// A change is in force at once.
	d.must("namespace", "set", "small", "--server=shared", "--pinned-memory-limit=8G")
	a.do("allocate 0 1M", "")
	if got := d.must("namespace", "get", "small", "shared", "pinned-memory-limit"); got != "8G" {
		t.Errorf("the limit is %s", got)
	}
	d.refused("namespace", "delete", "small", "--server=shared")
	a.end()
	b.end()
	patiencetest.Until(t, "clients leave", func() bool { _, err := d.verb("namespace", "delete", "small", "--server=shared"); return err == nil })
	if _, err := os.Lstat(small.pipe); err == nil {
		t.Errorf("%s is left", small.pipe)
	}
	if list := d.must("namespace", "list", "--format=csv,noheader"); !strings.HasPrefix(list, "default,shared,Ready,-,-,-,") || strings.Contains(list, "\n") {
		t.Errorf("namespaces are %s", list)
	}
}

// TestPitfalls are what was seen in the field of protocol 3.
func TestPitfalls(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "mps-v3", 0).start("-p", "3", "-m")
	d.must("server", "create", "s")
	d.must("namespace", "create", "n", "--server=s")
	// Limits of the server are those of its default namespace.
	d.must("server", "set", "s", "--pinned-memory-limit=1G")
	d.in("s", "").got().do("allocate 2G", mps.ErrOutOfMemory)
	d.in("s", "n").got().do("allocate 2G", "")
	// A device that is not there limits nothing.
	d.must("namespace", "set", "n", "--server=s", "--pinned-memory-limit="+d.machine.Spec().GPUs[1].UUID+"=1G")
	d.in("s", "n").got().do("allocate 2G", "")
	// A client that names a device which it does not see has no limits.
	d.must("namespace", "set", "n", "--server=s", "--pinned-memory-limit=5G")
	d.in("s", "n").got().do("allocate 2G", mps.ErrOutOfMemory)
	const off = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=7=1G"
	d.in("s", "n").got(off).do("allocate 6G", "")
	// It keeps those that the driver has of its cgroup.
	cgroup := t.TempDir()
	if err := d.machine.SetMemoryLimits("0", cgroup, simulator.MemoryLimits{Hard: 5 * gib}); err != nil {
		t.Fatal(err)
	}
	d.in("s", "n").got(off, cuda.CgroupVariable+"="+cgroup).do("allocate 6G", mps.ErrOutOfMemory)
}

func TestServers(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "mps-v3", 0, 1).start("-p", "3", "-m")
	gpu := d.machine.Spec().GPUs[1].UUID
	d.must("server", "create", "one", "--allowed-devices="+gpu)
	p := d.in("one", "").got()
	if got := p.first.MPS; len(got.Devices) != 1 || got.Devices[0].UUID != gpu || got.ServerName != "one" || got.Namespace != "default" {
		t.Errorf("a client got %+v", got)
	}
	if got := d.got().first.MPS; got.ServerName != "uid_0" || len(got.Devices) != 2 {
		t.Errorf("a client that names no server got %+v", got)
	}
	if got := d.must("server", "get", "one", "pipe-directory"); got != filepath.Join(d.pipe, "one") {
		t.Errorf("its pipe directory is %s", got)
	}
	if got := d.must("client", "list", "--server=one", "--format=csv,noheader"); !strings.Contains(got, ",one,0,default,") {
		t.Errorf("its clients are %s", got)
	}
	p.do("fault", mps.ErrLaunchFailed)
	d.refused("server", "delete", "nobody")
	d.must("server", "delete", "one", "--force")
	for _, words := range [][]string{
		{"server", "create", "one-two"}, {"server", "create", "two", "--uid=7"}, {"server", "create", "uid_0"},
		{"server", "create", "two", "--allowed-devices=2"}, {"server", "set", "uid_0"}, {"server", "set", "uid_0", "--pinned-memory-limit=4"},
		{"namespace", "create", "n"}, {"namespace", "create", "default", "--server=uid_0"}, {"namespace", "set", "n", "--server=uid_0", "--active-thread-percentage=5"},
		{"namespace", "create", "a-b", "--server=uid_0"}, {"server", "create", "two", "--odd"}, {"dance"}, {"server", "dance"},
		{"client", "terminate", "1"}, {"server", "list", "--format=xml"},
	} {
		d.refused(words...)
	}
	c := d.program()
	c.Stdin = strings.NewReader("get_server_list\n")
	if output, _ := c.CombinedOutput(); !strings.Contains(string(output), "Protocol 3") {
		t.Errorf("a command of protocol 2: %s", output)
	}
	d.must("-q")
	d.gone("control")
}
