package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/agent"
	"github.com/dovetail-dra/dovetail/pkg/atomicfile"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/classwatch"
	"github.com/dovetail-dra/dovetail/pkg/command"
	"github.com/dovetail-dra/dovetail/pkg/command/kube"
	"github.com/dovetail-dra/dovetail/pkg/hardware/holders"
	"github.com/dovetail-dra/dovetail/pkg/telemetry"
)

type runOptions struct {
	roots
	sharing         sharing
	nics            nics
	hostDriverRoot  string
	hostSysfsRoot   string
	node            string
	podUID          string
	pluginDir       string
	registryDir     string
	cdiDir          string
	podResources    string
	cdiHook         string
	hook            string
	processes       string
	httpAddress     string
	api             kube.Flags
	unhealthyEffect string
}

func newRun() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Publish this node's GPUs and NICs and prepare claims for the kubelet",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	o.addFlags(flags)
	o.sharing.addFlags(flags)
	o.nics.addFlags(flags)
	flags.StringVar(&o.hostSysfsRoot, "host-sysfs-root", "/sys", "sysfs as the host sees it, for the hook that moves NICs")
	flags.StringVar(&o.hostDriverRoot, "host-driver-root", "", "--driver-root as the host sees it, for the container runtime (default: the same)")
	flags.StringVar(&o.node, "node-name", os.Getenv(nodeNameVariable), "name of this node (default: $"+nodeNameVariable+")")
	flags.StringVar(&o.podUID, "pod-uid", os.Getenv("POD_UID"), "UID of the agent's own Pod, so that a new agent can start before the old one stops (default: $POD_UID)")
	flags.StringVar(&o.pluginDir, "plugin-dir", defaultPluginDir, "the driver's directory: sockets and the journal of prepared claims")
	flags.StringVar(&o.registryDir, "registry-dir", "/var/lib/kubelet/plugins_registry", "where the kubelet looks for plugins")
	flags.StringVar(&o.cdiDir, "cdi-dir", defaultCDIDir, "where the container runtime looks for CDI specifications")
	flags.StringVar(&o.podResources, "pod-resources", "/var/lib/kubelet/pod-resources/kubelet.sock", "the kubelet's socket that tells which claims Pods have, asked before a claim is released that the API server no longer has")
	flags.StringVar(&o.cdiHook, "cdi-hook", "/usr/bin/nvidia-cdi-hook", "program that prepares containers for the driver's libraries; it is copied to --plugin-dir, since it runs on the host")
	flags.StringVar(&o.hook, "hook", "/usr/bin/dovetail-hook", "program that moves NICs into containers and sets their memory limits; it is copied as well")
	flags.StringVar(&o.processes, "processes", fromEnvironment(processesVariable, "/proc"), "the host's /proc, to name the processes that keep a GPU or a partition from being released (default: $"+processesVariable+", or /proc)")
	defaultsInText(flags, "processes")
	flags.StringVar(&o.httpAddress, "http-address", ":8080", "address of /healthz, /readyz and /metrics")
	o.api.Add(flags)
	flags.StringVar(&o.unhealthyEffect, "unhealthy-effect", string(resourceapi.DeviceTaintEffectNoSchedule), "effect of the taint on unhealthy devices: NoSchedule, or NoExecute to have Pods evicted too")
	return cmd
}

func (o *runOptions) validate() error {
	if o.node == "" {
		return fmt.Errorf("--node-name: is empty: give the name of this node")
	}
	switch resourceapi.DeviceTaintEffect(o.unhealthyEffect) {
	case resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute:
	default:
		return fmt.Errorf("--unhealthy-effect: %q is not known: want NoSchedule or NoExecute", o.unhealthyEffect)
	}
	if o.hostDriverRoot == "" {
		o.hostDriverRoot = o.driver
	}
	return nil
}

func (o *runOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	sharing, err := o.sharing.parse()
	if err != nil {
		return err
	}
	network, err := o.nics.network(o.node)
	if err != nil {
		return err
	}
	// The agent is small and idle; memory on a GPU node is better spent otherwise.
	debug.SetGCPercent(25)
	metrics := telemetry.New(command.Version)
	api, err := o.client(metrics)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	classes, err := classwatch.Classes(api)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.pluginDir, 0o750); err != nil {
		return fmt.Errorf("--plugin-dir: %w", err)
	}
	cdiHook, err := installHook(o.cdiHook, o.pluginDir)
	if err != nil {
		return fmt.Errorf("--cdi-hook: %w", err)
	}
	hook, err := installHook(o.hook, o.pluginDir)
	if err != nil {
		return fmt.Errorf("--hook: %w", err)
	}
	looksAfterShares, err := o.sharing.open()
	if err != nil {
		return fmt.Errorf("--mps-socket: %w", err)
	}
	adapter, gpus, here := o.open(metrics.GPUs)
	defer func() { _ = adapter.Close() }()
	if here.NICs, err = o.nics.open(o.sysfs, o.processes, o.pluginDir, metrics.NICs); err != nil {
		return err
	}
	bootID, err := here.BootID()
	if err != nil {
		return fmt.Errorf("--proc-root: %w", err)
	}
	edits := cdi.NewNVIDIA(cdi.NVIDIAOptions{
		NVML: adapter.NVML, DriverRoot: o.driver, HostDriverRoot: o.hostDriverRoot, ProcRoot: o.proc,
		HookPath: cdiHook, NodeRoot: filepath.Dir(o.hostSysfsRoot), // beside /sys is /dev
		Hook: cdi.Hook{Path: hook, SysfsRoot: o.hostSysfsRoot},
	})
	a, err := agent.New(ctx, agent.Config{
		NodeName: o.node, PodUID: types.UID(o.podUID),
		PluginDir: o.pluginDir, RegistryDir: o.registryDir, CDIDir: o.cdiDir, HTTPAddress: o.httpAddress,
		PodResources: o.podResources, BootID: bootID,
		Kube: kube, Classes: classes, GPUs: gpus, NICs: here.NICs, Describe: here.Describe, Sharing: sharing, Network: network, MPS: metrics.Sharing(looksAfterShares), Edits: edits, HardwareChanged: edits.Reset,
		Holders: holders.NewFinder(o.processes, o.proc).Names,
		Metrics: metrics, Catalog: catalog.Options{UnhealthyEffect: resourceapi.DeviceTaintEffect(o.unhealthyEffect)},
	})
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting", "version", command.Version, "node", o.node)
	return a.Run(ctx)
}

// client is made for bursts: many Pods can start at once, and each waits for the look at
// its claim.
func (o *runOptions) client(metrics *telemetry.Metrics) (*rest.Config, error) {
	config, err := o.api.Config(program, 100)
	if err != nil {
		return nil, err
	}
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.Wrap(metrics.CountRequests)
	return config, nil
}

// installHook copies a hook to where the host can run it, and returns where.
func installHook(source, dir string) (string, error) {
	content, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	name := filepath.Base(source)
	target := filepath.Join(dir, name)
	files := atomicfile.Writer{Dir: dir, Durable: true, Mode: 0o755}
	if err := files.Sweep(name); err != nil {
		return "", err
	}
	info, err := os.Stat(target)
	if err == nil && info.Mode().Perm() == files.Mode {
		if there, err := os.ReadFile(target); err == nil && bytes.Equal(there, content) {
			return target, nil
		}
	}
	return target, files.Write(name, content)
}
