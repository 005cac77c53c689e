// Package description reads a machine's description, the YAML that people
// write, into the Spec that the simulator works with. It fills in what a
// description leaves out and refuses what makes no sense.
package description

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// File is a description. See demo/machines for examples.
type File struct {
	// Name of the machine. UUIDs and hardware addresses are made from it and from the
	// PCI addresses.
	Name string `json:"name"`
	// Driver is left out where there are no GPUs.
	Driver Driver `json:"driver,omitzero"`
	// Model, Fabric and MIG are those of every GPU that does not say otherwise.
	Model  string  `json:"model,omitempty"`
	Fabric *Fabric `json:"fabric,omitempty"`
	MIG    bool    `json:"mig,omitempty"`
	GPUs   []GPU   `json:"gpus,omitempty"`
	// NICModel and DCB are those of every NIC that does not say otherwise.
	NICModel string `json:"nicModel,omitempty"`
	DCB      *DCB   `json:"dcb,omitempty"`
	NICs     []NIC  `json:"nics,omitempty"`
}

// Driver is the NVIDIA driver: "570.124.06", and "12.8" for CUDA.
type Driver struct {
	Version string `json:"version"`
	CUDA    string `json:"cuda"`
}

// Parse reads a description and checks it.
func Parse(data []byte) (simulator.Spec, error) {
	file, err := Read(data)
	if err != nil {
		return simulator.Spec{}, err
	}
	return file.Spec()
}

// Read only reads it. A field that it does not know is failure.Invalid.
func Read(data []byte) (*File, error) {
	var file File
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return nil, failure.New(failure.Invalid, "machine description: %w", err)
	}
	return &file, nil
}

// Spec checks the description and fills in what it leaves out. The error names
// each field that is wrong, its value and the cure, and is failure.Invalid.
func (f *File) Spec() (simulator.Spec, error) {
	var problems []error
	refuse := func(field, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s: %w", field, fmt.Errorf(format, args...)))
	}
	spec := simulator.Spec{Name: f.Name}
	if f.Name == "" {
		refuse("name", "is missing: give the machine a name")
	}
	switch {
	case len(f.GPUs) == 0 && len(f.NICs) == 0:
		refuse("gpus", "are missing, as are nics: list at least one, with its address")
	case len(f.GPUs) == 0 && f.Driver != Driver{}:
		refuse("driver", "version %q, CUDA %q, but there are no gpus: leave it out", f.Driver.Version, f.Driver.CUDA)
	}
	if len(f.GPUs) > 0 || len(f.NICs) == 0 {
		f.driver(&spec, refuse)
	}
	spec.GPUs = inOrder("gpus", f.GPUs, f.gpu, func(g simulator.GPUSpec) machine.Address { return g.Address }, refuse)
	numberMinors(spec.GPUs)
	spec.NICs = inOrder("nics", f.NICs, f.nic, func(n simulator.NICSpec) machine.Address { return n.Address }, refuse)
	nameRDMA(spec.NICs)
	problems = append(problems, clashes(&spec)...)
	if len(problems) > 0 {
		return simulator.Spec{}, failure.New(failure.Invalid, "machine description: %w", errors.Join(problems...))
	}
	return spec, nil
}

func (f *File) driver(spec *simulator.Spec, refuse refusal) {
	spec.Driver.Version = f.Driver.Version
	if strings.Trim(f.Driver.Version, "0123456789.") != "" || !strings.Contains(f.Driver.Version, ".") {
		refuse("driver.version", `%q is not a driver version: write one such as "570.124.06"`, f.Driver.Version)
	}
	if err := spec.Driver.CUDA.UnmarshalText([]byte(f.Driver.CUDA)); err != nil {
		refuse("driver.cuda", `%q is not a CUDA version: write one such as "12.8", in quotes`, f.Driver.CUDA)
	}
}
