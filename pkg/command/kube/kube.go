// Package kube is what programs that work with Kubernetes have in common on the command
// line: where the API server is, and the log of its client.
package kube

import (
	"flag"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/command"
)

// Flags are --kubeconfig, and klog's --v and --vmodule.
type Flags struct{ kubeconfig string }

// Add adds them to a program's.
func (f *Flags) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file (default: the Pod's service account)")
	local := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(local)
	flags.AddGoFlag(local.Lookup("v"))
	flags.AddGoFlag(local.Lookup("vmodule"))
}

// Config is how a program of this name reaches the API server: with qps requests a second,
// and twice as many at once.
func (f *Flags) Config(program string, qps int) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if f.kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w; outside of a Pod, give --kubeconfig", err)
	}
	config.QPS, config.Burst = float32(qps), 2*qps
	config.UserAgent = program + "/" + command.Version
	return config, nil
}
