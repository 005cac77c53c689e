// Package description reads a machine's description, the YAML that people
// write, into the Spec that the simulator works with. It fills in what a
// description leaves out and refuses what makes no sense.
package description

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
)

// File is a description. See demo/machines for examples.
type File struct {
	// Name of the machine. UUIDs are made from it and from the addresses.
	Name   string `json:"name"`
	Driver Driver `json:"driver"`
	// Model, Fabric and MIG are those of every GPU that does not say otherwise.
	Model  string  `json:"model,omitempty"`
	Fabric *Fabric `json:"fabric,omitempty"`
	MIG    bool    `json:"mig,omitempty"`
	GPUs   []GPU   `json:"gpus"`
}

// Driver is the NVIDIA driver: "570.124.06", and "12.8" for CUDA.
type Driver struct {
	Version string `json:"version"`
	CUDA    string `json:"cuda"`
}

// Fabric is a place in an NVLink fabric of several nodes.
type Fabric struct {
	ClusterUUID string `json:"clusterUUID"`
	Clique      uint32 `json:"clique"`
}

// GPU is one GPU. Only its address has to be there.
type GPU struct {
	Address string `json:"address"`
	Model   string `json:"model,omitempty"`
	UUID    string `json:"uuid,omitempty"`
	// Minor is N of /dev/nvidiaN; left out, GPUs are counted by address.
	Minor *int `json:"minor,omitempty"`
	// Above is the way to the GPU through the PCI tree, with slashes as in
	// sysfs: root, root port, and upstream and downstream port of each switch.
	// Left out, the GPU sits on the root "pciDDDD:00" of its domain.
	Above string `json:"above,omitempty"`
	// NUMANode is -1, unknown, when left out.
	NUMANode *int  `json:"numaNode,omitempty"`
	ECC      *bool `json:"ecc,omitempty"`
	MIG      *bool `json:"mig,omitempty"`
	// Partitions are what the administrator's boot script makes; they need MIG.
	Partitions []simulator.PartitionSpec `json:"partitions,omitempty"`
	Fabric     *Fabric                   `json:"fabric,omitempty"`
	Faults     []simulator.Fault         `json:"faults,omitempty"`
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
	spec.Driver.Version = f.Driver.Version
	if strings.Trim(f.Driver.Version, "0123456789.") != "" || !strings.Contains(f.Driver.Version, ".") {
		refuse("driver.version", `%q is not a driver version: write one such as "570.124.06"`, f.Driver.Version)
	}
	if err := spec.Driver.CUDA.UnmarshalText([]byte(f.Driver.CUDA)); err != nil {
		refuse("driver.cuda", `%q is not a CUDA version: write one such as "12.8", in quotes`, f.Driver.CUDA)
	}
	if len(f.GPUs) == 0 {
		refuse("gpus", "are missing: list at least one, with its address")
	}
	for i := range f.GPUs {
		gpu, err := f.gpu(&f.GPUs[i])
		if err != nil {
			refuse(fmt.Sprintf("gpus[%d]", i), "%w", err)
			continue
		}
		spec.GPUs = append(spec.GPUs, gpu)
	}
	slices.SortStableFunc(spec.GPUs, func(a, b simulator.GPUSpec) int { return a.Address.Compare(b.Address) })
	numberMinors(spec.GPUs)
	problems = append(problems, clashes(spec.GPUs)...)
	if len(problems) > 0 {
		return simulator.Spec{}, failure.New(failure.Invalid, "machine description: %w", errors.Join(problems...))
	}
	return spec, nil
}

func (f *File) gpu(g *GPU) (simulator.GPUSpec, error) {
	var zero simulator.GPUSpec
	address, err := machine.ParseAddress(g.Address)
	if err != nil {
		return zero, fmt.Errorf("address: %w", err)
	}
	gpuModel, err := model.Lookup(cmp.Or(g.Model, f.Model))
	if err != nil {
		return zero, fmt.Errorf("model: %w", err)
	}
	above := cmp.Or(strings.ToLower(g.Above), fmt.Sprintf("pci%04x:00", address.Domain))
	if err := checkAbove(above); err != nil {
		return zero, fmt.Errorf("above: %w", err)
	}
	spec := simulator.GPUSpec{
		UUID:       cmp.Or(g.UUID, simulator.UUID(f.Name, address)),
		Address:    address,
		Model:      gpuModel.Name,
		Minor:      or(g.Minor, -1),
		Above:      strings.Split(above, "/"),
		NUMANode:   or(g.NUMANode, -1),
		ECC:        or(g.ECC, gpuModel.ECC),
		MIG:        or(g.MIG, f.MIG),
		Partitions: g.Partitions,
		Faults:     g.Faults,
	}
	if !uuidForm.MatchString(spec.UUID) {
		return zero, fmt.Errorf("uuid: %q is not of the form GPU-01234567-89ab-cdef-0123-456789abcdef", g.UUID)
	}
	if g.Minor != nil && (*g.Minor < 0 || *g.Minor > maxMinor) {
		return zero, fmt.Errorf("minor: %d is out of range: give 0 to %d, or leave it out", *g.Minor, maxMinor)
	}
	if spec.NUMANode < -1 {
		return zero, fmt.Errorf("numaNode: %d is out of range: give 0 or more, or -1 for unknown", spec.NUMANode)
	}
	if spec.ECC && !gpuModel.ECC {
		return zero, fmt.Errorf("ecc: true, but model %s has none: leave it out", gpuModel.Name)
	}
	if spec.MIG && gpuModel.MIG == nil {
		return zero, fmt.Errorf("mig: true, but model %s cannot be partitioned: leave it out", gpuModel.Name)
	}
	if err := spec.CheckPartitions(); err != nil {
		return zero, fmt.Errorf("partitions: %w", err)
	}
	if spec.Fabric, err = fabric(cmp.Or(g.Fabric, f.Fabric), gpuModel); err != nil {
		return zero, fmt.Errorf("fabric: %w", err)
	}
	for _, fault := range g.Faults {
		if !slices.Contains(simulator.Faults(), fault) {
			return zero, fmt.Errorf("faults: %q is unknown: use one of %q", fault, simulator.Faults())
		}
	}
	return spec, nil
}

func fabric(f *Fabric, m *model.Model) (*simulator.Fabric, error) {
	switch {
	case f == nil:
		return nil, nil
	case !m.Fabric:
		return nil, fmt.Errorf("model %s has no NVLink fabric: leave it out", m.Name)
	case !fabricForm.MatchString(f.ClusterUUID):
		return nil, fmt.Errorf("clusterUUID: %q is not of the form 01234567-89ab-cdef-0123-456789abcdef", f.ClusterUUID)
	}
	return &simulator.Fabric{ClusterUUID: f.ClusterUUID, Clique: f.Clique}, nil
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
