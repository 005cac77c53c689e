package agent

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatav1beta1 "k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
)

func (a *Agent) startPlugin(ctx context.Context) (*kubeletplugin.Helper, error) {
	if err := removeDeadSockets(a.config.RegistryDir, a.config.PluginDir); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot remove sockets of earlier agents")
	}
	helper, err := kubeletplugin.Start(ctx, a.plugin,
		kubeletplugin.DriverName(catalog.DriverName),
		kubeletplugin.KubeClient(a.config.Kube),
		kubeletplugin.NodeName(a.config.NodeName),
		kubeletplugin.RollingUpdate(a.config.PodUID),
		kubeletplugin.Serialize(false),
		kubeletplugin.PluginDataDirectoryPath(a.config.PluginDir),
		kubeletplugin.RegistrarDirectoryPath(a.config.RegistryDir),
		kubeletplugin.GRPCInterceptor(a.noteRegistration),
		kubeletplugin.GRPCInterceptor(a.metadata.refuseWithout),
		kubeletplugin.EnableDeviceMetadata(true, []schema.GroupVersion{metadatav1beta1.SchemeGroupVersion}),
		kubeletplugin.CDIDirectory(a.config.CDIDir),
		kubeletplugin.MetadataFileOps(kubeletplugin.MetadataFileOperations{WriteFile: a.metadata.WriteFile, RemoveAll: a.metadata.RemoveAll}),
	)
	if err != nil {
		return nil, fmt.Errorf("serve the kubelet: %w", err)
	}
	return helper, nil
}

// noteRegistration sees the kubelet's word that it has taken us in.
func (a *Agent) noteRegistration(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	response, err := handler(ctx, req)
	if err == nil && info.FullMethod == "/pluginregistration.Registration/NotifyRegistrationStatus" {
		a.once.Do(func() {
			klog.FromContext(ctx).Info("Registered with the kubelet")
			close(a.registered)
		})
	}
	return response, err
}

func (a *Agent) ready() error {
	select {
	case <-a.looked:
	default:
		return errFirstLook
	}
	select {
	case <-a.registered:
		return a.plugin.calls.open()
	default:
		return errors.New("the kubelet has not registered this plugin yet")
	}
}
