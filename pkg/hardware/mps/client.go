// Package mps reaches dovetail-mps, which looks after the node's MPS control
// daemons and time slices and outlives the agent.
package mps

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/mps/wire"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Dir is where dovetail-mps and clients of MPS meet, if nothing else is said.
const Dir = "/run/dovetail/mps"

// Socket is the path of dovetail-mps's socket in such a directory.
func Socket(dir string) string { return filepath.Join(dir, "mps.sock") }

// patience is how long a call waits for a dovetail-mps that is not there: longer
// than it takes to be back after it was killed, on a busy node, too.
const patience = 5 * time.Second

// Client is hardware.Sharing by way of dovetail-mps. It connects when it is first
// asked, and again whenever that is needed.
type Client struct {
	conn *grpc.ClientConn
	mps  wire.MPSClient
	cure string
}

var _ hardware.Sharing = (*Client)(nil)

// New takes the path of dovetail-mps's socket, which need not be there yet.
func New(socket string) (*Client, error) {
	// The socket's mode and the server's look at who connects are the credentials.
	conn, err := grpc.NewClient("unix:"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}),
		grpc.WithUnaryInterceptor(again))
	if err != nil {
		return nil, fmt.Errorf("socket of dovetail-mps %s: %w", socket, err)
	}
	return &Client{
		conn: conn, mps: wire.NewMPSClient(conn),
		cure: fmt.Sprintf("see that the dovetail-mps Pod of this node runs, and that its socket is seen here as %s", socket),
	}, nil
}

// Close ends the connection. No call may follow.
func (c *Client) Close() error { return c.conn.Close() }

// again makes a call anew that nobody answered: every call of hardware.Sharing can be.
func again(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := invoke(ctx, method, request, reply, conn, options...)
		if status.Code(err) != codes.Unavailable || !connected(waiting, conn) {
			return err
		}
	}
}

// connected waits for a connection, until ctx ends.
func connected(ctx context.Context, conn *grpc.ClientConn) bool {
	for ctx.Err() == nil {
		state := conn.GetState()
		if state == connectivity.Ready {
			return true
		}
		conn.Connect()
		conn.WaitForStateChange(ctx, state)
	}
	return false
}

// StartMPS implements hardware.Sharing, as do the following.
func (c *Client) StartMPS(ctx context.Context, devices []string) (hardware.MPSDaemon, error) {
	r, err := c.mps.Start(ctx, &wire.StartRequest{Devices: devices})
	if err != nil {
		return hardware.MPSDaemon{}, c.error(ctx, err)
	}
	return hardware.MPSDaemon{Protocol: int(r.GetProtocol()), Pipe: r.GetPipe(), Shm: r.GetShm()}, nil
}

// StopMPS implements hardware.Sharing.
func (c *Client) StopMPS(ctx context.Context, devices []string) error {
	_, err := c.mps.Stop(ctx, &wire.StopRequest{Devices: devices})
	return c.error(ctx, err)
}

// MakeNamespace implements hardware.Sharing.
func (c *Client) MakeNamespace(ctx context.Context, devices []string, name string, limits hardware.MPSLimits) (string, error) {
	r, err := c.mps.MakeNamespace(ctx, &wire.MakeNamespaceRequest{
		Devices: devices, Name: name, ThreadPercentage: int32(limits.ThreadPercentage), Memory: limits.Memory,
	})
	return r.GetPipe(), c.error(ctx, err)
}

// RemoveNamespace implements hardware.Sharing.
func (c *Client) RemoveNamespace(ctx context.Context, devices []string, name string) error {
	_, err := c.mps.RemoveNamespace(ctx, &wire.RemoveNamespaceRequest{Devices: devices, Name: name})
	return c.error(ctx, err)
}

// TimeSlice implements hardware.Sharing.
func (c *Client) TimeSlice(ctx context.Context, gpu string) (machine.TimeSlice, error) {
	r, err := c.mps.TimeSlice(ctx, &wire.TimeSliceRequest{Gpu: gpu})
	return machine.TimeSlice(r.GetTimeSlice()), c.error(ctx, err)
}

// SetTimeSlice implements hardware.Sharing.
func (c *Client) SetTimeSlice(ctx context.Context, gpu string, to machine.TimeSlice) error {
	_, err := c.mps.SetTimeSlice(ctx, &wire.SetTimeSliceRequest{Gpu: gpu, TimeSlice: string(to)})
	return c.error(ctx, err)
}

// WatchMPS implements hardware.Sharing. It waits for a dovetail-mps that is not there.
func (c *Client) WatchMPS(ctx context.Context, notify func(hardware.MPSEvent)) error {
	for connected(ctx, c.conn) {
		err := c.watch(ctx, notify)
		if ctx.Err() == nil && status.Code(err) != codes.Unavailable {
			return c.error(ctx, err)
		}
	}
	return nil
}

// watch is WatchMPS until the connection ends.
func (c *Client) watch(ctx context.Context, notify func(hardware.MPSEvent)) error {
	stream, err := c.mps.Watch(ctx, &wire.WatchRequest{})
	if err != nil {
		return err
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		notify(hardware.MPSEvent{Devices: r.GetDevices(), Kind: hardware.MPSEventKind(r.GetKind()), Message: r.GetMessage()})
	}
}

// error is what a call's error means here. Where the caller's time is over while
// nobody answers, it is the latter that is told.
func (c *Client) error(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && status.Code(err) != codes.Unavailable {
		return context.Cause(ctx)
	}
	return wire.FromStatus(err, c.cure)
}
