package rdma_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// files are a function's, by path below its directory. What begins with "->" is a link.
type files map[string]string

// roce is a ConnectX-7 as Linux 6.12 shows it.
func roce(netdev, device string, number int) files {
	f := files{
		"class": "0x020000", "vendor": "0x15b3", "device": "0x1021", "numa_node": "0",
		"driver": "->../../bus/pci/drivers/mlx5_core", "sriov_totalvfs": "16",
	}
	f.withNetdev(netdev, "400000")
	f.withRDMA(device, number, "Ethernet")
	return f
}

func (f files) withNetdev(name, speed string) {
	f["net/"+name+"/speed"] = speed
	f["net/"+name+"/dev_port"] = "0"
}

func (f files) withRDMA(name string, number int, layer string) {
	dir := "infiniband/" + name + "/"
	port := dir + "ports/1/"
	f[dir+"fw_ver"], f[dir+"hca_type"] = "28.39.1002", "MT4129"
	f[port+"link_layer"], f[port+"state"], f[port+"rate"] = layer, "4: ACTIVE", "400 Gb/sec (4X NDR)"
	for i, gid := range []string{"fe80:0000:0000:0000:ba3f:d2ff:fe00:0001", "", "0000:0000:0000:0000:0000:ffff:0a01:0001"} {
		if gid == "" {
			f[port+fmt.Sprintf("gids/%d", i)] = "0000:0000:0000:0000:0000:0000:0000:0000"
			continue
		}
		f[port+fmt.Sprintf("gids/%d", i)] = gid
		f[port+fmt.Sprintf("gid_attrs/types/%d", i)] = "RoCE v2"
		f[port+fmt.Sprintf("gid_attrs/ndevs/%d", i)] = "eth1"
	}
	f[fmt.Sprintf("infiniband_verbs/uverbs%d/ibdev", number)] = name
	f[fmt.Sprintf("infiniband_mad/umad%d/ibdev", number)] = name
}

// without leaves out what is below some directories.
func (f files) without(dirs ...string) files {
	for path := range f {
		for _, d := range dirs {
			if path == d || strings.HasPrefix(path, d+"/") {
				delete(f, path)
			}
		}
	}
	return f
}

// world is a machine: a tree of files, and a kernel in memory.
type world struct {
	t      testing.TB
	root   string
	kernel *kerneltest.Kernel
	nics   *rdma.NICs
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, root: t.TempDir(), kernel: kerneltest.New()}
	w.write("bus/pci/devices/.here", "")
	w.write("class/misc/rdma_cm/dev", "10:58")
	w.nics = rdma.New(rdma.Options{SysfsRoot: w.root, ProcRoot: t.TempDir(), Kernel: w.kernel})
	t.Cleanup(func() {
		if n := w.kernel.Unclosed(); n != 0 {
			t.Errorf("%d namespaces have not been closed", n)
		}
	})
	return w
}

func (w *world) write(path, content string) {
	w.t.Helper()
	path = filepath.Join(w.root, path)
	must(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	if target, link := strings.CutPrefix(content, "->"); link {
		must(w.t, os.Symlink(target, path))
		return
	}
	must(w.t, os.WriteFile(path, []byte(content+"\n"), 0o644))
}

// add builds a function in, below a root port of its own.
func (w *world) add(address string, f files) machine.Address {
	w.t.Helper()
	dir := "devices/pci0000:10/0000:10:01.0/" + address
	w.write("bus/pci/devices/"+address, "->../../../"+dir)
	for path, content := range f {
		w.write(filepath.Join(dir, path), content)
		if name, ok := strings.CutSuffix(path, "/ibdev"); ok {
			w.write(filepath.Join("class", name, "ibdev"), content)
		}
	}
	return at(w.t, address)
}

func (w *world) remove(address string) {
	w.t.Helper()
	must(w.t, os.Remove(filepath.Join(w.root, "bus/pci/devices", address)))
}

// link makes an interface of a function on the host: 10.1.0.1/24, MTU 4200, up.
func (w *world) link(name, function string, number int) int {
	w.t.Helper()
	index := w.kernel.AddLink(kerneltest.HostPath, kernel.Link{
		Name: name, MAC: macOf(number), PermanentMAC: macOf(number), MTU: 4200, MaxMTU: 9978,
		Parent: function,
	})
	w.onHost(func(host kernel.Namespace) {
		must(w.t, host.SetUp(index, true))
		must(w.t, host.AddAddress(index, fmt.Sprintf("10.%d.0.1/24", number)))
		must(w.t, host.AddAddress(index, fmt.Sprintf("fd00:%d::1/64", number)))
		must(w.t, host.AddRoute(index, machine.Route{To: "10.100.0.0/16", Via: fmt.Sprintf("10.%d.0.254", number), Metric: number}))
		must(w.t, host.AddRoute(index, machine.Route{To: "0.0.0.0/0", Via: fmt.Sprintf("10.%d.0.254", number), Table: 100 + number}))
	})
	return index
}

func macOf(number int) string { return fmt.Sprintf("b8:3f:d2:00:00:%02x", number) }

// both builds a RoCE NIC in, with its interface and RDMA device.
func (w *world) both(address, netdev, device string, number int) machine.Address {
	w.t.Helper()
	w.link(netdev, address, number)
	w.kernel.AddRDMA(kerneltest.HostPath, device)
	w.kernel.HasDCB(kerneltest.HostPath, netdev, lossless())
	return w.add(address, roce(netdev, device, number))
}

func lossless() machine.DCB {
	return machine.DCB{
		PFC: [8]bool{3: true}, Trust: machine.TrustDSCP, DSCP: []machine.DSCPPriority{{DSCP: 26, Priority: 3}},
		ETS: &machine.ETS{Class: [8]uint8{3: 1}, Bandwidth: [8]uint8{50, 50}, Algorithm: [8]uint8{2, 2}},
	}
}

func (w *world) onHost(f func(kernel.Namespace)) { w.in(kerneltest.HostPath, f) }

func (w *world) in(path string, f func(kernel.Namespace)) {
	w.t.Helper()
	n, err := w.kernel.Open(path)
	must(w.t, err)
	defer n.Close()
	f(n)
}

func at(t testing.TB, address string) machine.Address {
	t.Helper()
	a, err := machine.ParseAddress(address)
	must(t, err)
	return a
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
