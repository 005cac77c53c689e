package nvml

import (
	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// unknown stands where NVML names something that this program does not know.
const unknown = "Unknown"

// Words for NVML's numbers, as nvidia-smi prints them.
var (
	architectures = map[api.DeviceArchitecture]string{
		api.DEVICE_ARCH_KEPLER: "Kepler", api.DEVICE_ARCH_MAXWELL: "Maxwell", api.DEVICE_ARCH_PASCAL: "Pascal",
		api.DEVICE_ARCH_VOLTA: "Volta", api.DEVICE_ARCH_TURING: "Turing", api.DEVICE_ARCH_AMPERE: "Ampere",
		api.DEVICE_ARCH_ADA: "Ada Lovelace", api.DEVICE_ARCH_HOPPER: "Hopper", api.DEVICE_ARCH_BLACKWELL: "Blackwell",
		api.DEVICE_ARCH_RUBIN: "Rubin",
	}
	brands = map[api.BrandType]string{
		api.BRAND_QUADRO: "Quadro", api.BRAND_TESLA: "Tesla", api.BRAND_NVS: "NVS", api.BRAND_GRID: "GRID",
		api.BRAND_GEFORCE: "GeForce", api.BRAND_TITAN: "Titan", api.BRAND_NVIDIA_VAPPS: "NVIDIA Virtual Applications",
		api.BRAND_NVIDIA_VPC: "NVIDIA Virtual PC", api.BRAND_NVIDIA_VCS: "NVIDIA Virtual Compute Server",
		api.BRAND_NVIDIA_VWS: "NVIDIA RTX Virtual Workstation", api.BRAND_NVIDIA_CLOUD_GAMING: "NVIDIA Cloud Gaming",
		api.BRAND_QUADRO_RTX: "Quadro RTX", api.BRAND_NVIDIA_RTX: "NVIDIA RTX", api.BRAND_NVIDIA: "NVIDIA",
		api.BRAND_GEFORCE_RTX: "GeForce RTX", api.BRAND_TITAN_RTX: "Titan RTX",
	}
	computeModes = map[machine.ComputeMode]api.ComputeMode{
		machine.ComputeModeDefault:          api.COMPUTEMODE_DEFAULT,
		machine.ComputeModeProhibited:       api.COMPUTEMODE_PROHIBITED,
		machine.ComputeModeExclusiveProcess: api.COMPUTEMODE_EXCLUSIVE_PROCESS,
	}
)

func architecture(a api.DeviceArchitecture) string { return word(architectures, a) }

func brand(b api.BrandType) string { return word(brands, b) }

func word[K comparable](words map[K]string, key K) string {
	if w, ok := words[key]; ok {
		return w
	}
	return unknown
}

// computeMode: the exclusive mode by thread, which current drivers do not have,
// is the stricter kin of that by process.
func computeMode(m api.ComputeMode) machine.ComputeMode {
	switch m {
	case api.COMPUTEMODE_PROHIBITED:
		return machine.ComputeModeProhibited
	case api.COMPUTEMODE_EXCLUSIVE_PROCESS, api.COMPUTEMODE_EXCLUSIVE_THREAD:
		return machine.ComputeModeExclusiveProcess
	}
	return machine.ComputeModeDefault
}

// multiprocessors of a whole GPU: NVML counts CUDA cores, of which a
// multiprocessor has a number fixed by its compute capability (CUDA C++
// Programming Guide, "Compute Capabilities"). 0 where that is not known.
func multiprocessors(cores int, c machine.Version) int {
	perMultiprocessor := 128 // Maxwell, 6.1, 8.6, Ada, Hopper, Blackwell
	switch {
	case c.Major < 5 || c.Major > 12:
		return 0
	case c == machine.Version{Major: 6}, c.Major == 7, c == machine.Version{Major: 8}:
		perMultiprocessor = 64 // GP100, Volta, Turing, GA100
	}
	return cores / perMultiprocessor
}
