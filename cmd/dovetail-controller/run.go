package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/controller"
)

// namespaceFile names a Pod's namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

type runOptions struct {
	kubeconfig     string
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
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default: the Pod's service account)")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "work only while holding the Lease "+controller.LeaseName+"; false where there is one replica")
	flags.StringVar(&o.leaseNamespace, "lease-namespace", "", "namespace of the Lease (default: the Pod's)")
	flags.StringVar(&o.metricsAddress, "metrics-address", ":8080", "address of /metrics; 0: none")
	flags.StringVar(&o.healthAddress, "health-address", ":8081", "address of /healthz and /readyz; 0: none")
	o.webhook.addFlags(flags)
	addLogFlags(flags)
	return cmd
}

func addLogFlags(flags *pflag.FlagSet) {
	local := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(local)
	flags.AddGoFlag(local.Lookup("v"))
	flags.AddGoFlag(local.Lookup("vmodule"))
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
	config, err := o.config()
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
	klog.FromContext(ctx).Info("Starting", "version", version)
	return manager.Start(ctx)
}

func (o *runOptions) config() (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if o.kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w; outside of a Pod, give --kubeconfig", err)
	}
	config.QPS, config.Burst = 50, 100
	config.UserAgent = "dovetail-controller/" + version
	return config, nil
}
