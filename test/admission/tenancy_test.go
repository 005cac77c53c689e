package admission

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// tenant makes a namespace.
func (w *world) tenant(name string, labels map[string]string) {
	w.Helper()
	w.must(w.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}))
}

// quota: a namespace has so many devices of a class, and of another none.
func (w *world) quota(t *testing.T) {
	const tenant = "team-a"
	w.tenant(tenant, nil)
	hard := corev1.ResourceList{
		"gpu.dovetail.dev.deviceclass.resource.k8s.io/devices": resource.MustParse("2"),
		"mig.dovetail.dev.deviceclass.resource.k8s.io/devices": resource.MustParse("0"),
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "gpus"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	w.must(w.Create(t.Context(), quota))
	// What kube-controller-manager does, which is not here.
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{}}
	for name := range hard {
		quota.Status.Used[name] = resource.MustParse("0")
	}
	w.must(w.Status().Update(t.Context(), quota))
	ask := func(name, class string, count int64) error {
		return w.Create(t.Context(), claim(tenant, name, resourceapi.ExactDeviceRequest{
			DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
		}))
	}
	// The quota counts some moments after it was made.
	w.eventually("the quota counts", func() bool {
		err := w.tryOut(claim(tenant, "x", resourceapi.ExactDeviceRequest{DeviceClassName: "mig.dovetail.dev"}))
		return err != nil && strings.Contains(err.Error(), "exceeded quota")
	})
	refused(t, ask("one", "gpu.dovetail.dev", 1))
	refused(t, ask("two", "gpu.dovetail.dev", 2), "exceeded quota: gpus", "used: gpu.dovetail.dev.deviceclass.resource.k8s.io/devices=1")
	refused(t, ask("another", "gpu.dovetail.dev", 1))
	refused(t, ask("partition", "mig.dovetail.dev", 1), "exceeded quota: gpus", "limited: mig.dovetail.dev.deviceclass.resource.k8s.io/devices=0")
	refused(t, ask("share", "mps.dovetail.dev", 1))
}

// adminAccess is for namespaces that an administrator has labelled.
func (w *world) adminAccess(t *testing.T) {
	w.tenant("team-b", nil)
	w.tenant("monitoring", map[string]string{resourceapi.DRAAdminNamespaceLabelKey: "true"})
	look := resourceapi.ExactDeviceRequest{
		DeviceClassName: "monitor.dovetail.dev", AllocationMode: resourceapi.DeviceAllocationModeAll, AdminAccess: ptr.To(true),
		Tolerations: []resourceapi.DeviceToleration{{Key: "dovetail.dev/monitor", Operator: resourceapi.DeviceTolerationOpExists}},
	}
	refused(t, w.tryOut(claim("team-b", "look", look)), "spec.devices.requests[0].adminAccess: Forbidden", "resource.kubernetes.io/admin-access")
	refused(t, w.tryOut(claim("monitoring", "look", look)))
}
