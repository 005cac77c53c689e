package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/command"
	"github.com/dovetail-dra/dovetail/pkg/command/kube"
	"github.com/dovetail-dra/dovetail/pkg/controller"
)

// namespaceFile names a Pod's namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

type runOptions struct {
	api            kube.Flags
	leaderElect    bool
	leaseNamespace string
	metricsAddress string
	healthAddress  string
	webhook        webhook
}

func newRun() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run until a signal ends it, or another replica leads",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	o.api.Add(flags)
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "work only while holding the Lease "+controller.LeaseName+"; false where there is one replica")
	flags.StringVar(&o.leaseNamespace, "lease-namespace", "", "namespace of the Lease (default: the Pod's)")
	flags.StringVar(&o.metricsAddress, "metrics-address", ":8080", "address of /metrics; 0: none")
	flags.StringVar(&o.healthAddress, "health-address", ":8081", "address of /healthz and /readyz; 0: none")
	o.webhook.addFlags(flags)
	return cmd
}

// validate says which flag is wrong, and what would be right.
func (o *runOptions) validate() error {
	if o.leaderElect && o.leaseNamespace == "" {
		namespace, err := ownNamespace()
		if err != nil {
			return fmt.Errorf("--lease-namespace: is empty, and this is no Pod (%w): name a namespace, or set --leader-elect=false", err)
		}
		o.leaseNamespace = namespace
	}
	return o.webhook.validate()
}

// ownNamespace is that of the Pod.
func ownNamespace() (string, error) {
	content, err := os.ReadFile(namespaceFile)
	return strings.TrimSpace(string(content)), err
}

func (o *runOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	config, err := o.api.Config(program, 50)
	if err != nil {
		return err
	}
	// Between two collections the heap grows by half and not to its double: most of it
	// is slices that stay.
	debug.SetGCPercent(50)
	manager, err := controller.New(config, controller.Options{
		LeaderElection: o.leaderElect, Namespace: o.leaseNamespace,
		MetricsAddress: o.metricsAddress, HealthAddress: o.healthAddress, SeenSlice: o.webhook.seen,
	})
	if err != nil {
		return err
	}
	if err := o.webhook.add(ctx, manager, config); err != nil {
		return fmt.Errorf("set up the webhook: %w", err)
	}
	klog.FromContext(ctx).Info("Starting", "version", command.Version)
	ctx, end := o.webhook.lingers(ctx)
	defer end()
	return manager.Start(ctx)
}
