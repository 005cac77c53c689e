package host_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/hardware/host"
	"github.com/dovetail-dra/dovetail/pkg/hardware/nvml"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// manyVFs are virtual functions of each NIC.
const manyVFs = 16

// BenchmarkDescribe describes a large machine: eight GPUs through NVML, and sixteen NICs
// with virtual functions, which are files in a tree and interfaces of this machine's kernel.
func BenchmarkDescribe(b *testing.B) {
	description, err := machines.Description("dual-rail")
	if err != nil {
		b.Fatal(err)
	}
	const nic = "  mtu: 9000\n"
	m := simulatortest.DescribedWithLibrary(b, bytes.ReplaceAll(description, []byte(nic), fmt.Appendf(nil, "%s  maxVFs: %d\n  numVFs: %[2]d\n", nic, manyVFs)))
	state, err := m.State()
	if err != nil {
		b.Fatal(err)
	}
	k := kerneltest.NewReal(b)
	for _, f := range state.Functions() {
		for _, d := range f.Netdevs {
			k.AddVeth(k.HostNamespace, d.Name, d.MAC)
		}
	}
	sysfs := filepath.Join(m.Root(), "sys")
	gpus := nvml.New(nvml.Options{DriverRoot: m.Root()})
	defer gpus.Close()
	nics := rdma.New(rdma.Options{SysfsRoot: sysfs, Kernel: k})
	h := host.New(gpus, sysfs, filepath.Join(m.Root(), "proc"))
	h.NICs = nics
	for b.Loop() {
		d, err := h.Describe(b.Context())
		if err != nil || len(d.GPUs) != 8 || len(d.NICs) != 16 || len(d.NICs[7].VFs) != manyVFs || len(d.Faults) != 0 {
			b.Fatalf("%v: %d GPUs, %d NICs, faults %+v", err, len(d.GPUs), len(d.NICs), d.Faults)
		}
	}
	b.ReportMetric(float64(nics.Reads())/float64(b.N), "reads/op")
}
