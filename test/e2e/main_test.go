// Package e2e tests Dovetail on a real cluster: a real API server, scheduler,
// kubelet, containerd and runc, and the very image that ships. Only what is below
// NVML and sysfs is simulated. In each test the Pod itself tells what it holds.
//
//	make e2e                                             # brings up a cluster of its own
//	bin/cluster up 2; bin/cluster run go test ./test/e2e # on one that stays
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// The nodes, and the machines that they are.
const (
	node1 = "node-1" // a DGX H100: 8 GPUs, 4 a NUMA node
	node2 = "node-2" // mixed: 2 A100 and 2 L4
)

var machines = map[string]struct {
	description string
	gpus        int
}{
	node1: {"dgx-h100", 8},
	node2: {"mixed", 4},
}

// agentHere is the label of nodes that run the agent: without it there is none.
const agentHere = "dovetail.dev/agent"

// failpointFile arms a fail point of the agent on a node.
const failpointFile = harness.PluginDir + "/failpoint"

// replicas of the controller.
const replicas = 2

var values = harness.Values{
	"nodeSelector":                  map[string]string{agentHere: "here"},
	"extraEnv":                      []map[string]string{{"name": "DOVETAIL_FAILPOINT_FILE", "value": failpointFile}},
	"terminationGracePeriodSeconds": 5,
	"controller":                    map[string]int{"replicas": replicas},
	"shares": []map[string]any{{
		"name": "small", "kind": "mps", "memory": "10Gi", "compute": 25, "extendedResourceName": smallShare,
	}},
}

// smallShare is the extended resource of the size that the chart's values name.
const smallShare = "example.com/gpu-small"

// cluster is where all tests run.
var cluster *harness.Cluster

func TestMain(m *testing.M) {
	launcher := flag.String("cluster", "", "path of test/cluster's program: bring up a cluster, test, take it down")
	flag.Parse()
	os.Exit(run(m, *launcher))
}

func run(m *testing.M, launcher string) int {
	ctx := context.Background()
	switch {
	case harness.Inside():
	case launcher != "":
		l := harness.Launcher{Path: launcher, Name: "e2e", Out: os.Stderr}
		code, err := harness.Bring{Launcher: l, Nodes: len(machines)}.Around(ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
		}
		return code
	default:
		fmt.Println("e2e: skipped, since this is not in a cluster's network. Run `make e2e`.")
		return 0
	}
	if err := setUp(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: cannot set up the cluster:", err)
		return 1
	}
	// Tests wait for the cluster most of the time, not for a processor.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	return m.Run()
}

// setUp makes the machines, installs Dovetail, and waits until all is published.
func setUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var err error
	if cluster, err = harness.Open(); err != nil {
		return err
	}
	if err := cluster.LoadImages(ctx); err != nil {
		return err
	}
	for node, machine := range machines {
		if err := cluster.CreateMachine(ctx, node, machine.description); err != nil {
			return err
		}
		if err := cluster.Label(ctx, node, agentHere, "here"); err != nil {
			return err
		}
	}
	if err := cluster.Install(ctx, values); err != nil {
		return err
	}
	for node, machine := range machines {
		if _, err := cluster.WaitAgent(ctx, node); err != nil {
			return err
		}
		if _, err := cluster.WaitGPUs(ctx, node, machine.gpus); err != nil {
			return err
		}
	}
	return cluster.WaitController(ctx)
}
