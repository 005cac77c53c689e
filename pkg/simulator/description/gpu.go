package description

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
)

// maxMinor: 254 and 255 of the major are nvidia-modeset and nvidiactl.
const maxMinor = 253

var (
	uuidForm   = regexp.MustCompile(`^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	fabricForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// GPU is one GPU, with a model where the file gives none for all.
type GPU struct {
	Place
	Model string `json:"model,omitempty"`
	UUID  string `json:"uuid,omitempty"`
	// Minor is N of /dev/nvidiaN; left out, GPUs are counted by address.
	Minor *int  `json:"minor,omitempty"`
	ECC   *bool `json:"ecc,omitempty"`
	MIG   *bool `json:"mig,omitempty"`
	// Partitions are what the administrator's boot script makes; they need MIG.
	Partitions []simulator.PartitionSpec `json:"partitions,omitempty"`
	Fabric     *Fabric                   `json:"fabric,omitempty"`
	Faults     []simulator.Fault         `json:"faults,omitempty"`
}

// Fabric is a place in an NVLink fabric of several nodes.
type Fabric struct {
	ClusterUUID string `json:"clusterUUID"`
	Clique      uint32 `json:"clique"`
}

func (f *File) gpu(g *GPU) (simulator.GPUSpec, error) {
	var zero simulator.GPUSpec
	address, above, numaNode, err := g.parse()
	if err != nil {
		return zero, err
	}
	gpuModel, err := model.Lookup(cmp.Or(g.Model, f.Model))
	if err != nil {
		return zero, fmt.Errorf("model: %w", err)
	}
	spec := simulator.GPUSpec{
		UUID:       cmp.Or(g.UUID, simulator.UUID(f.Name, address)),
		Address:    address,
		Model:      gpuModel.Name,
		Minor:      or(g.Minor, -1),
		Above:      above,
		NUMANode:   numaNode,
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

// numberMinors gives the GPUs that have no minor number the lowest free ones.
func numberMinors(gpus []simulator.GPUSpec) {
	taken := map[int]bool{}
	for _, g := range gpus {
		taken[g.Minor] = true
	}
	next := 0
	for i := range gpus {
		if gpus[i].Minor >= 0 {
			continue
		}
		for taken[next] {
			next++
		}
		gpus[i].Minor = next
		taken[next] = true
	}
}
