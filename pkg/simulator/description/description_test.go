package description_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/description"
)

const head = "name: m\ndriver: {version: 550.163.01, cuda: \"12.4\"}\n"

func TestDefaults(t *testing.T) {
	got, err := description.Parse([]byte(head + "model: t4\ngpus: [{address: 0000:3B:00.0}, {address: 0000:1b:00.0, minor: 0}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	gpu := func(bus uint8, minor int) simulator.GPUSpec {
		address := machine.Address{Bus: bus}
		return simulator.GPUSpec{
			UUID: simulator.UUID("m", address), Address: address, Model: "t4", Minor: minor,
			Above: []string{"pci0000:00"}, NUMANode: -1, ECC: true,
		}
	}
	want := simulator.Spec{
		Name:   "m",
		Driver: machine.Driver{Version: "550.163.01", CUDA: machine.Version{Major: 12, Minor: 4}},
		GPUs:   []simulator.GPUSpec{gpu(0x1b, 0), gpu(0x3b, 1)},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"nam: x": `unknown field "nam"`,
		"gpus: [{address: 0000:1b:00.0, model: t4}]": "driver.version: ",
		head:                                     "gpus: are missing, as are nics",
		head + "gpus: [{model: t4}]":             `gpus[0]: address: PCI address ""`,
		head + "gpus: [{address: 0000:1b:00.0}]": `gpus[0]: model: GPU model "" is unknown: use one of a100-sxm4-40gb`,
		head + "model: t5\ngpus: [{address: 0000:1b:00.0}]":                                                                                             `GPU model "t5" is unknown`,
		head + "model: t4\ngpus: [{address: 0000:1b:00.0, uuid: GPU-1}]":                                                                                `gpus[0]: uuid: "GPU-1"`,
		head + "model: t4\ngpus: [{address: 0000:1b:00.0, minor: 254}]":                                                                                 "minor: 254 is out of range: give 0 to 253",
		head + "model: t4\ngpus: [{address: 0000:1b:00.0, numaNode: -2}]":                                                                               "numaNode: -2 is out of range",
		head + "model: t4\ngpus: [{address: 0000:1b:00.0, mig: true}]":                                                                                  "model t4 cannot be partitioned",
		head + "model: h100-sxm5-80gb\ngpus: [{address: 0000:1b:00.0, partitions: [{profile: 1g.10gb}]}]":                                               "gpus[0]: partitions: 1g.10gb needs MIG mode: write mig: true",
		head + "model: h100-sxm5-80gb\nmig: true\ngpus: [{address: 0000:1b:00.0, partitions: [{profile: 1g.5gb}]}]":                                     `MIG profile "1g.5gb" is unknown: use one of 1g.10gb, 2g.20gb`,
		head + "model: h100-sxm5-80gb\nmig: true\ngpus: [{address: 0000:1b:00.0, partitions: [{profile: 3g.40gb, start: 3}]}]":                          "3g.40gb cannot start at 3: use one of [0 4]",
		head + "model: h100-sxm5-80gb\nmig: true\ngpus: [{address: 0000:1b:00.0, partitions: [{profile: 4g.40gb}, {profile: 1g.10gb, start: 3}]}]":      "no room for 1g.10gb at 3: instance 1 lies there",
		head + "model: a30\nmig: true\ngpus: [{address: 0000:1b:00.0, partitions: [{profile: 1g.6gb, start: 0}, {profile: 1g.6gb, start: 0}]}]":         "no room for 1g.6gb at 0",
		head + "model: t4\ngpus: [{address: 0000:1b:00.0, partitions: [{profile: 1g.10gb}]}]":                                                           "partitions: 1g.10gb needs MIG mode",
		head + "model: t4\nfabric: {clique: 1}\ngpus: [{address: 0000:1b:00.0}]":                                                                        "model t4 has no NVLink fabric",
		head + "model: gb200\nfabric: {clique: 1}\ngpus: [{address: 0000:1b:00.0}]":                                                                     `fabric: clusterUUID: ""`,
		head + "model: t4\ngpus: [{address: 0000:1b:00.0, faults: [tired]}]":                                                                            `faults: "tired" is unknown: use one of ["lost"`,
		head + "model: t4\ngpus: [{address: 0000:1b:00.0, above: pci0}]":                                                                                `above: "pci0" does not begin with a root`,
		head + "model: t4\ngpus: [{address: 0000:1b:00.0, above: pci0000:1a/port}]":                                                                     `above: PCI address "port"`,
		head + "model: t4\ngpus: [{address: 0000:1b:00.0}, {address: 0000:1b:00.0}]":                                                                    "have the same address 0000:1b:00.0",
		head + "model: t4\ngpus: [{address: 0000:1b:00.0, minor: 1}, {address: 0000:1c:00.0, minor: 1}]":                                                "have the same minor 1",
		head + "model: t4\ngpus:\n- {address: 0000:1b:00.0, above: pci0000:1a/0000:1a:00.0}\n- {address: 0000:1c:00.0, above: pci0000:1f/0000:1a:00.0}": "port 0000:1a:00.0 is below both",
		head + "model: t4\ngpus:\n- {address: 0000:1a:00.0}\n- {address: 0000:1c:00.0, above: pci0000:1f/0000:1a:00.0}":                                 "is a device and a port above another one",
	} {
		_, err := description.Parse([]byte(text))
		if !errors.Is(err, failure.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want one with %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range machines.Names() {
		data, err := machines.Description(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, err := description.Parse(data)
		if err != nil {
			if !errors.Is(err, failure.Invalid) {
				t.Errorf("error of no class: %v", err)
			}
			return
		}
		for i, g := range spec.GPUs {
			if len(g.Above) == 0 || g.UUID == "" || g.Minor < 0 || i > 0 && spec.GPUs[i-1].Address.Compare(g.Address) >= 0 {
				t.Errorf("GPU %d was let through as %+v", i, g)
			}
		}
		for i, n := range spec.NICs {
			if len(n.Above) == 0 || n.NumVFs > n.MaxVFs || n.RDMA == "?" || i > 0 && spec.NICs[i-1].Address.Compare(n.Address) >= 0 {
				t.Errorf("NIC %d was let through as %+v", i, n)
			}
		}
	})
}
