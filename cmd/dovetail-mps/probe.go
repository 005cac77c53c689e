package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/dovetail-dra/dovetail/pkg/hardware/mps"
)

// probePatience is for the kubelet's probes.
const probePatience = 2 * time.Second

func newProbe() *cobra.Command {
	var runDir string
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Say whether serve answers, for the kubelet's probes",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return probe(cmd.Context(), mps.Socket(runDir)) },
	}
	addRunDir(cmd.Flags(), &runDir)
	return cmd
}

func probe(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return err
	}
	if answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("%s: %s", socket, answer.GetStatus())
	}
	return nil
}
