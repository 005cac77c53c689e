package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/controller/compact"
	"github.com/dovetail-dra/dovetail/pkg/controller/partitionclass"
	"github.com/dovetail-dra/dovetail/pkg/controller/usage"
)

// LeaseName is the name of the Lease by which replicas agree on who leads.
const LeaseName = "dovetail-controller"

// Options of the manager.
type Options struct {
	// LeaderElection is for several replicas: one of them works, the others are ready to.
	LeaderElection bool
	// Namespace of the Lease; empty: that of the Pod.
	Namespace string
	// MetricsAddress and HealthAddress to listen on; "0": not at all.
	MetricsAddress, HealthAddress string
	// Delay in place of partitionclass.Delay.
	Delay time.Duration
	// SeenSlice, where it is set, is called with each ResourceSlice of this driver, as it is
	// before it is made compact, whenever it changes.
	SeenSlice func(*resourceapi.ResourceSlice)
	// Registry of metrics. Default: controller-runtime's, which the manager serves.
	Registry prometheus.Registerer
}

// New returns a manager with all reconcilers. What else is to run with it is added to
// it: its client reads PartitionClasses, DeviceClasses, DeviceTaintRules, and compact
// ResourceSlices and ResourceClaims from its caches, and nothing else.
func New(config *rest.Config, o Options) (manager.Manager, error) {
	ctrl.SetLogger(klog.Background())
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme(),
		Cache:                   caches(o.SeenSlice),
		LeaderElection:          o.LeaderElection,
		LeaderElectionID:        LeaseName,
		LeaderElectionNamespace: o.Namespace,
		// The command ends as soon as the manager has, so another can lead at once.
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       server.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:        o.HealthAddress,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the controller: %w", err)
	}
	if o.Registry == nil {
		o.Registry = metrics.Registry
	}
	if o.Delay == 0 {
		o.Delay = partitionclass.Delay
	}
	classes := &partitionclass.Reconciler{
		Client: mgr.GetClient(), Events: mgr.GetEventRecorder(partitionclass.Manager), Usage: usage.New(), Metrics: partitionclass.NewMetrics(o.Registry), Delay: o.Delay,
	}
	return mgr, errors.Join(
		classes.SetupWithManager(mgr),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", func(r *http.Request) error { return cachesAreFull(r, mgr.GetCache()) }),
	)
}

// scheme knows what the controller reads and writes.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	return s
}

// caches hold a thousand nodes' slices in little memory. Nothing is cached by accident.
func caches(seen func(*resourceapi.ResourceSlice)) cache.Options {
	var slices compact.Slices
	transform := slices.Transform
	if seen != nil {
		transform = func(object any) (any, error) {
			if s, ok := object.(*resourceapi.ResourceSlice); ok {
				seen(s)
			}
			return slices.Transform(object)
		}
	}
	shared := ptr.To(true) // readers change nothing, so they need no copies
	return cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&resourceapi.ResourceSlice{}: {
				Field:                 fields.OneTermEqualSelector(resourceapi.ResourceSliceSelectorDriver, catalog.DriverName),
				Transform:             transform,
				UnsafeDisableDeepCopy: shared,
			},
			&resourceapi.ResourceClaim{}: {Transform: compact.Claim, UnsafeDisableDeepCopy: shared},
		},
	}
}

// cachesAreFull is what readiness means: a replica that could lead now.
func cachesAreFull(r *http.Request, c cache.Cache) error {
	ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
	defer cancel()
	if !c.WaitForCacheSync(ctx) {
		return errors.New("the caches are not full yet")
	}
	return nil
}
