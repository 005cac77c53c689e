package agent

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/dovetail-dra/dovetail/pkg/journal"
)

// podResources asks the kubelet what its Pods have, through its socket for that.
type podResources string

// Has says whether a Pod on this node still has the claim.
func (socket podResources) Has(ctx context.Context, claim journal.Claim) (bool, error) {
	conn, err := grpc.NewClient("unix://"+string(socket), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return false, fmt.Errorf("ask the kubelet for its Pods: %w", err)
	}
	defer func() { _ = conn.Close() }()
	list, err := podresources.NewPodResourcesListerClient(conn).List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return false, fmt.Errorf("ask the kubelet for its Pods at %s: %w", socket, err)
	}
	for _, pod := range list.GetPodResources() {
		for _, container := range pod.GetContainers() {
			for _, resource := range container.GetDynamicResources() {
				if resource.GetClaimNamespace() == claim.Namespace && resource.GetClaimName() == claim.Name {
					return true, nil
				}
			}
		}
	}
	return false, nil
}
