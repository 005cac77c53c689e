package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/pflag"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/admission"
	"github.com/dovetail-dra/dovetail/pkg/admission/fleet"
	"github.com/dovetail-dra/dovetail/pkg/certificates"
)

// webhook is what every replica does of admission, leader or not.
type webhook struct {
	address   string
	name      string
	namespace string
	fleet     *fleet.Fleet
}

func (w *webhook) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&w.address, "webhook-address", "", "address at which the API server has objects checked; empty: nothing is checked")
	flags.StringVar(&w.name, "webhook-name", "dovetail-webhook", "name of the webhook's Service, of the Secret with its certificate, and of its ValidatingWebhookConfiguration")
	flags.StringVar(&w.namespace, "webhook-namespace", "", "namespace of Service and Secret (default: the Pod's)")
	w.fleet = fleet.New()
}

// validate says which flag is wrong, and what would be right.
func (w *webhook) validate() error {
	if w.address == "" || w.namespace != "" {
		return nil
	}
	namespace, err := ownNamespace()
	if err != nil {
		return fmt.Errorf("--webhook-namespace: is empty, and this is no Pod (%w): name a namespace, or leave --webhook-address out", err)
	}
	w.namespace = namespace
	return nil
}

// seen is told of each ResourceSlice as it comes.
func (w *webhook) seen(s *resourceapi.ResourceSlice) {
	if w.address != "" {
		w.fleet.Set(s)
	}
}

// add has the manager run it.
func (w *webhook) add(ctx context.Context, mgr manager.Manager, config *rest.Config) error {
	if w.address == "" {
		return nil
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	keeper, err := certificates.New(certificates.Config{
		Kube: kube, Namespace: w.namespace, Secret: w.name, Webhooks: w.name, Clock: clock.RealClock{},
		Names: certificates.Names{Authority: w.name, DNS: []string{w.name + "." + w.namespace + ".svc"}},
	})
	if err != nil {
		return err
	}
	measured, err := admission.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	classes := admission.NewClasses()
	server := &admission.Server{
		Address: w.address, Certificate: keeper.Certificate,
		Handler: &admission.Handler{Checker: &admission.Checker{Classes: classes, Fleet: w.fleet, Coming: coming(mgr.GetClient())}, Metrics: measured},
	}
	return errors.Join(
		follow(ctx, mgr, &resourceapi.DeviceClass{}, classes),
		// Slices are told of by seen, before the manager's cache makes them compact.
		follow(ctx, mgr, &resourceapi.ResourceSlice{}, toolscache.ResourceEventHandlerFuncs{DeleteFunc: w.fleet.OnDelete}),
		mgr.Add(keeper),
		mgr.Add(server),
		mgr.AddReadyzCheck("certificate", func(*http.Request) error { return keeper.Ready() }),
	)
}

// coming asks the manager's cache for a PartitionClass. One that cannot be asked has none.
func coming(cache client.Reader) func(context.Context, string) bool {
	return func(ctx context.Context, name string) bool {
		return cache.Get(ctx, client.ObjectKey{Name: name}, &v1alpha1.PartitionClass{}) == nil
	}
}

// lingers returns the context by which the manager ends.
func (w *webhook) lingers(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.address == "" {
		return ctx, func() {}
	}
	return admission.Linger(ctx)
}

// follow has a handler told of objects in the manager's cache.
func follow(ctx context.Context, mgr manager.Manager, object client.Object, handler toolscache.ResourceEventHandler) error {
	informer, err := mgr.GetCache().GetInformer(ctx, object)
	if err != nil {
		return fmt.Errorf("watch %T: %w", object, err)
	}
	_, err = informer.AddEventHandler(handler)
	return err
}
