package main

import (
	"github.com/spf13/pflag"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/host"
	"github.com/dovetail-dra/dovetail/pkg/hardware/nvml"
)

// roots say where the hardware's files are.
type roots struct {
	driver string
	sysfs  string
	proc   string
}

func (r *roots) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&r.driver, "driver-root", "/", "root of the NVIDIA driver's installation, with its libraries and /dev")
	flags.StringVar(&r.sysfs, "sysfs-root", "/sys", "sysfs")
	flags.StringVar(&r.proc, "proc-root", "/proc", "proc")
}

// open opens the hardware; the driver need not be there yet. wrap may put something
// round the GPUs.
func (r *roots) open(wrap func(hardware.GPUs) hardware.GPUs) (*nvml.GPUs, hardware.GPUs, *host.Host) {
	adapter := nvml.New(nvml.Options{DriverRoot: r.driver})
	gpus := wrap(adapter)
	return adapter, gpus, host.New(gpus, r.sysfs, r.proc)
}
