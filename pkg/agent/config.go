package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/telemetry"
)

// Config is what an agent works with.
type Config struct {
	// NodeName is also the name of the node's pool.
	NodeName string
	// PodUID lets two agents work side by side during an upgrade; empty where
	// the agent runs outside a Pod.
	PodUID types.UID
	// PluginDir, RegistryDir and CDIDir are the kubelet's and the runtime's
	// directories, the same inside and outside of the container.
	PluginDir   string
	RegistryDir string
	CDIDir      string
	// PodResources is the kubelet's socket that tells what Pods have.
	PodResources string
	// BootID of this boot.
	BootID string
	// HTTPAddress serves /healthz, /readyz and /metrics.
	HTTPAddress string

	Kube kubernetes.Interface
	// Classes lists and watches the cluster's PartitionClasses; nil: there are none.
	Classes cache.ListerWatcher
	GPUs    hardware.GPUs
	// MPS is who looks after shares of GPUs.
	MPS hardware.Sharing
	// NICs is access to the node's network cards; nil: none are offered.
	NICs     hardware.NICs
	Describe func(ctx context.Context) (machine.Machine, error)
	// Sharing and Network are what the administrator says of shares and NICs.
	Sharing machine.Sharing
	Network machine.Network
	Edits   cdi.Edits
	// Holders as claim.Config has it.
	Holders func(gpu *machine.GPU, gpuInstance *int) ([]string, error)
	// HardwareChanged is called when something about the hardware changes.
	HardwareChanged func()
	Metrics         *telemetry.Metrics
	Catalog         catalog.Options
}
