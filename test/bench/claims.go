package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/dovetail-dra/dovetail/test/bench/kubelet"
	"github.com/dovetail-dra/dovetail/test/harness"
)

const (
	request = "gpu"
	// creators is how many claims are created at once.
	creators = 4
)

// exclusive has the hardware set for each claim.
const exclusive = `{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig","computeMode":"ExclusiveProcess"}`

// claims makes claims as a scheduler would leave them: allocated and reserved.
type claims struct {
	cluster   *harness.Cluster
	namespace string
	// pod is the one for which they are reserved; it never runs.
	pod  *corev1.Pod
	made int
}

func newClaims(ctx context.Context, c *harness.Cluster) (*claims, error) {
	namespace := fmt.Sprintf("bench-%d", os.Getpid()) // a cluster that stays can serve twice
	if err := c.CreateNamespace(ctx, namespace, nil); err != nil {
		return nil, err
	}
	pod, err := c.Kube.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "user"},
		Spec: corev1.PodSpec{
			SchedulerName: "nobody",
			Containers:    []corev1.Container{{Name: "c", Image: "registry.local/pause:1"}},
		},
	}, metav1.CreateOptions{})
	return &claims{cluster: c, namespace: namespace, pod: pod}, err
}

// create makes one claim for each of the devices; parameters may be empty.
func (c *claims) create(ctx context.Context, parameters string, devices ...string) ([]*kubelet.Claim, error) {
	results := make([]resourceapi.DeviceRequestAllocationResult, len(devices))
	for i, device := range devices {
		results[i] = resourceapi.DeviceRequestAllocationResult{Request: request, Driver: harness.Driver, Pool: node, Device: device}
	}
	return c.createOf(ctx, parameters, results)
}

// share makes one claim for a share of each of the devices: 1Gi, and of the
// multiprocessors 2 percent, where they are shared.
func (c *claims) share(ctx context.Context, parameters string, devices ...string) ([]*kubelet.Claim, error) {
	results := make([]resourceapi.DeviceRequestAllocationResult, len(devices))
	for i, device := range devices {
		id := uuid.NewUUID()
		capacity := map[resourceapi.QualifiedName]resource.Quantity{"clients": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
		if strings.HasPrefix(device, "mps-") {
			capacity["compute"] = resource.MustParse("2")
		}
		results[i] = resourceapi.DeviceRequestAllocationResult{
			Request: request, Driver: harness.Driver, Pool: node, Device: device, ShareID: &id, ConsumedCapacity: capacity,
		}
	}
	return c.createOf(ctx, parameters, results)
}

func (c *claims) createOf(ctx context.Context, parameters string, results []resourceapi.DeviceRequestAllocationResult) ([]*kubelet.Claim, error) {
	made := make([]*kubelet.Claim, len(results))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i, result := range results {
		c.made++
		name := fmt.Sprintf("claim-%d", c.made)
		group.Go(func() (err error) {
			made[i], err = c.createOne(ctx, name, result, parameters)
			return err
		})
	}
	return made, group.Wait()
}

func (c *claims) createOne(ctx context.Context, name string, result resourceapi.DeviceRequestAllocationResult, parameters string) (*kubelet.Claim, error) {
	api := c.cluster.Kube.ResourceV1().ResourceClaims(c.namespace)
	claim, err := api.Create(ctx, &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: request, Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu.dovetail.dev"},
		}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	allocation := &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{result},
	}}
	if parameters != "" {
		allocation.Devices.Config = []resourceapi.DeviceAllocationConfiguration{{
			Source: resourceapi.AllocationConfigSourceClaim,
			DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
				Driver: harness.Driver, Parameters: runtime.RawExtension{Raw: []byte(parameters)},
			}},
		}}
	}
	claim.Status.Allocation = allocation
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: c.pod.Name, UID: c.pod.UID}}
	if claim, err = api.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return nil, err
	}
	return &kubelet.Claim{Namespace: c.namespace, Name: name, Uid: string(claim.UID)}, nil
}
