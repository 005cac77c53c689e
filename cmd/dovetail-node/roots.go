package main

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/cgroup"
	"github.com/dovetail-dra/dovetail/pkg/hardware/host"
	"github.com/dovetail-dra/dovetail/pkg/hardware/nvml"
)

// roots say where the hardware's files are.
type roots struct {
	driver string
	sysfs  string
	proc   string
}

// Environment variables with the defaults of the flags. The chart sets them, so that
// a command in the agent's container needs no flags.
const (
	driverRootVariable = "DOVETAIL_DRIVER_ROOT"
	sysfsRootVariable  = "DOVETAIL_SYSFS_ROOT"
	procRootVariable   = "DOVETAIL_PROC_ROOT"
	processesVariable  = "DOVETAIL_PROCESSES"
	pluginDirVariable  = "DOVETAIL_PLUGIN_DIR"
	cdiDirVariable     = "DOVETAIL_CDI_DIR"
	nodeNameVariable   = "NODE_NAME"
)

// Where the agent keeps things, if nothing else is said.
const (
	defaultPluginDir = "/var/lib/kubelet/plugins/" + catalog.DriverName
	defaultCDIDir    = "/var/run/cdi"
)

func (r *roots) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&r.driver, "driver-root", fromEnvironment(driverRootVariable, "/"),
		"root of the NVIDIA driver's installation, with its libraries and /dev (default: $"+driverRootVariable+", or /)")
	flags.StringVar(&r.sysfs, "sysfs-root", fromEnvironment(sysfsRootVariable, "/sys"), "sysfs (default: $"+sysfsRootVariable+", or /sys)")
	flags.StringVar(&r.proc, "proc-root", fromEnvironment(procRootVariable, "/proc"), "proc (default: $"+procRootVariable+", or /proc)")
	defaultsInText(flags, "driver-root", "sysfs-root", "proc-root")
}

// defaultsInText keeps the help from adding the defaults of flags whose text says them.
func defaultsInText(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		flags.Lookup(name).DefValue = ""
	}
}

func fromEnvironment(variable, otherwise string) string {
	if value := os.Getenv(variable); value != "" {
		return value
	}
	return otherwise
}

// open opens the hardware; the driver need not be there yet. wrap may put something
// round the GPUs.
func (r *roots) open(wrap func(hardware.GPUs) hardware.GPUs) (*nvml.GPUs, hardware.GPUs, *host.Host) {
	adapter := nvml.New(nvml.Options{DriverRoot: r.driver, Cgroup: cgroup.Own(cgroup.Root)})
	gpus := wrap(adapter)
	here := host.New(gpus, r.sysfs, r.proc)
	here.CgroupRoot = cgroup.Root
	return adapter, gpus, here
}
