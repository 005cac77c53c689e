package ramdisk

// Where the guest has what its tests use.
const (
	// Library is the simulated NVML.
	Library = "simulator/libnvidia-ml.so.1"
	// ContainerRoot is the root file system of containers, which has one program, that
	// behaves as one that uses CUDA.
	ContainerRoot    = "container"
	ContainerProgram = "cuda-client"
)
