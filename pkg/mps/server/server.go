// Package server offers a hardware.Sharing to the node's agent, on a Unix socket.
package server

import (
	"context"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/mps/wire"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Server answers calls until it is stopped.
type Server struct {
	wire.UnimplementedMPSServer
	sharing hardware.Sharing
	grpc    *grpc.Server
	stopped chan struct{}
}

// New takes who does the work.
func New(sharing hardware.Sharing) *Server {
	s := &Server{sharing: sharing, grpc: grpc.NewServer(grpc.Creds(rootOnly{})), stopped: make(chan struct{})}
	wire.RegisterMPSServer(s.grpc, s)
	grpc_health_v1.RegisterHealthServer(s.grpc, health.NewServer())
	return s
}

// Serve answers until ctx ends, then lets calls finish, and returns nil.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() {
		close(s.stopped) // or watchers would hold it up
		s.grpc.GracefulStop()
	})
	defer stop()
	return s.grpc.Serve(listener)
}

// Listen makes the socket, which only root may open, in the place of a dead one.
func Listen(path string) (net.Listener, error) {
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.RemoveAll(fresh); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // by then it has another name
	if err = os.Chmod(fresh, 0o600); err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}

// Start implements wire.MPSServer, as do the following.
func (s *Server) Start(ctx context.Context, r *wire.StartRequest) (*wire.StartResponse, error) {
	daemon, err := s.sharing.StartMPS(ctx, r.GetDevices())
	if err != nil {
		return nil, wire.ToStatus(err)
	}
	return &wire.StartResponse{Protocol: int32(daemon.Protocol), Pipe: daemon.Pipe, Shm: daemon.Shm}, nil
}

// Stop implements wire.MPSServer.
func (s *Server) Stop(ctx context.Context, r *wire.StopRequest) (*wire.StopResponse, error) {
	return &wire.StopResponse{}, wire.ToStatus(s.sharing.StopMPS(ctx, r.GetDevices()))
}

// MakeNamespace implements wire.MPSServer.
func (s *Server) MakeNamespace(ctx context.Context, r *wire.MakeNamespaceRequest) (*wire.MakeNamespaceResponse, error) {
	limits := hardware.MPSLimits{ThreadPercentage: int(r.GetThreadPercentage()), Memory: r.GetMemory()}
	pipe, err := s.sharing.MakeNamespace(ctx, r.GetDevices(), r.GetName(), limits)
	return &wire.MakeNamespaceResponse{Pipe: pipe}, wire.ToStatus(err)
}

// RemoveNamespace implements wire.MPSServer.
func (s *Server) RemoveNamespace(ctx context.Context, r *wire.RemoveNamespaceRequest) (*wire.RemoveNamespaceResponse, error) {
	return &wire.RemoveNamespaceResponse{}, wire.ToStatus(s.sharing.RemoveNamespace(ctx, r.GetDevices(), r.GetName()))
}

// TimeSlice implements wire.MPSServer.
func (s *Server) TimeSlice(ctx context.Context, r *wire.TimeSliceRequest) (*wire.TimeSliceResponse, error) {
	slice, err := s.sharing.TimeSlice(ctx, r.GetGpu())
	return &wire.TimeSliceResponse{TimeSlice: string(slice)}, wire.ToStatus(err)
}

// SetTimeSlice implements wire.MPSServer.
func (s *Server) SetTimeSlice(ctx context.Context, r *wire.SetTimeSliceRequest) (*wire.SetTimeSliceResponse, error) {
	return &wire.SetTimeSliceResponse{}, wire.ToStatus(s.sharing.SetTimeSlice(ctx, r.GetGpu(), machine.TimeSlice(r.GetTimeSlice())))
}

// Watch implements wire.MPSServer.
func (s *Server) Watch(_ *wire.WatchRequest, stream grpc.ServerStreamingServer[wire.WatchResponse]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	go func() {
		select {
		case <-s.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := s.sharing.WatchMPS(ctx, func(e hardware.MPSEvent) {
		if stream.Send(&wire.WatchResponse{Devices: e.Devices, Kind: string(e.Kind), Message: e.Message}) != nil {
			cancel()
		}
	})
	if err == nil {
		return status.Error(codes.Unavailable, "dovetail-mps stops") // the watcher comes again
	}
	return wire.ToStatus(err)
}
