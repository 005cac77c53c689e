// Command floor is the smallest DRA driver that the kubelet plugin helper allows:
// it says yes to every claim. It touches no hardware, keeps no record, writes no CDI
// specification and publishes nothing. What a call costs here it costs every
// driver, so it is what dovetail-node is measured against. Its client of the API
// server has the same settings as dovetail-node's.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file")
	pluginDir := flag.String("plugin-dir", "", "for the driver's socket")
	registryDir := flag.String("registry-dir", "", "for the registration socket")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *pluginDir, *registryDir); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, pluginDir, registryDir string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, driver{},
		kubeletplugin.DriverName("floor.dovetail.dev"),
		kubeletplugin.KubeClient(kube),
		kubeletplugin.NodeName("node-1"),
		kubeletplugin.Serialize(false),
		kubeletplugin.PluginDataDirectoryPath(pluginDir),
		kubeletplugin.RegistrarDirectoryPath(registryDir),
		kubeletplugin.HealthService(false),
	)
	if err != nil {
		return err
	}
	<-ctx.Done()
	helper.Stop()
	return nil
}

type driver struct{}

func (driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, c := range claims {
		var devices []kubeletplugin.Device
		for _, r := range c.Status.Allocation.Devices.Results {
			devices = append(devices, kubeletplugin.Device{
				Requests: []string{r.Request}, PoolName: r.Pool, DeviceName: r.Device,
				CDIDeviceIDs: []string{"dovetail.dev/floor=" + string(c.UID)},
			})
		}
		results[c.UID] = kubeletplugin.PrepareResult{Devices: devices}
	}
	return results, nil
}

func (driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, c := range claims {
		results[c.UID] = nil
	}
	return results, nil
}

func (driver) HandleError(_ context.Context, err error, msg string) {
	fmt.Fprintln(os.Stderr, "floor:", msg+":", err)
}

func (driver) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}
