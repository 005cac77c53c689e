package agent

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/dovetail-dra/dovetail/pkg/journal"
)

// kubeletsPods has one Pod with the claim team-a/train.
type kubeletsPods struct {
	podresources.UnimplementedPodResourcesListerServer
}

func (kubeletsPods) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	return &podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{{
		Containers: []*podresources.ContainerResources{{}, {
			DynamicResources: []*podresources.DynamicResource{{ClaimNamespace: "team-a", ClaimName: "train"}},
		}},
	}}}, nil
}

func TestPodResources(t *testing.T) {
	dir, err := os.MkdirTemp("", "pods") // sockets want short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := podResources(filepath.Join(dir, "kubelet.sock"))
	if _, err := socket.Has(t.Context(), journal.Claim{}); err == nil || !strings.Contains(err.Error(), string(socket)) {
		t.Errorf("without a kubelet: %v", err)
	}
	listener, err := net.Listen("unix", string(socket))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, kubeletsPods{})
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	for claim, want := range map[journal.Claim]bool{
		{Namespace: "team-a", Name: "train"}: true,
		{Namespace: "team-b", Name: "train"}: false,
		{Namespace: "team-a", Name: "other"}: false,
	} {
		if has, err := socket.Has(t.Context(), claim); err != nil || has != want {
			t.Errorf("%s: %v, %v", claim, has, err)
		}
	}
}
