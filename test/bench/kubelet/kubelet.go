// Package kubelet plays the kubelet to one DRA plugin: it finds the plugin's
// registration socket, registers it, and asks for claims to be prepared and
// released, with the kubelet's own protocols. It checks nothing beyond that.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Plugin is a plugin that was registered.
type Plugin struct {
	conn *grpc.ClientConn
	dra  dra.DRAPluginClient
}

// Register waits for the first registration socket in the directory and registers
// its plugin, as the kubelet does.
func Register(ctx context.Context, registryDir string) (*Plugin, error) {
	socket, err := waitSocket(ctx, registryDir)
	if err != nil {
		return nil, err
	}
	conn, err := dial(socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	registrar := registration.NewRegistrationClient(conn)
	info, err := registrar.GetInfo(ctx, &registration.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("ask %s what it is: %w", socket, err)
	}
	p := &Plugin{}
	if p.conn, err = dial(info.Endpoint); err != nil {
		return nil, err
	}
	p.dra = dra.NewDRAPluginClient(p.conn)
	_, err = registrar.NotifyRegistrationStatus(ctx, &registration.RegistrationStatus{PluginRegistered: true})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tell %s that it is registered: %w", info.Name, err), p.Close())
	}
	return p, nil
}

func dial(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// waitSocket returns the first registration socket to be seen in a directory.
func waitSocket(ctx context.Context, dir string) (string, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return "", err
	}
	defer watcher.Close()
	if err := watcher.Add(dir); err != nil {
		return "", err
	}
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), "reg.sock") {
				return filepath.Join(dir, e.Name()), nil
			}
		}
		select {
		case <-watcher.Events:
		case err := <-watcher.Errors:
			return "", err
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for a plugin in %s: %w", dir, context.Cause(ctx))
		}
	}
}

// Close hangs up.
func (p *Plugin) Close() error { return p.conn.Close() }

// Claim is what the kubelet says of a claim.
type Claim = dra.Claim

// Prepare has one claim prepared.
func (p *Plugin) Prepare(ctx context.Context, c *Claim) error {
	response, err := p.dra.NodePrepareResources(ctx, &dra.NodePrepareResourcesRequest{Claims: []*Claim{c}})
	if err != nil {
		return fmt.Errorf("prepare %s: %w", c.Name, err)
	}
	answer := response.Claims[c.Uid]
	if answer.GetError() != "" || len(answer.GetDevices()) == 0 {
		return fmt.Errorf("prepare %s: %d devices, error %q", c.Name, len(answer.GetDevices()), answer.GetError())
	}
	return nil
}

// Unprepare has one claim released.
func (p *Plugin) Unprepare(ctx context.Context, c *Claim) error {
	response, err := p.dra.NodeUnprepareResources(ctx, &dra.NodeUnprepareResourcesRequest{Claims: []*Claim{c}})
	if err != nil {
		return fmt.Errorf("release %s: %w", c.Name, err)
	}
	if answer, ok := response.Claims[c.Uid]; !ok || answer.Error != "" {
		return fmt.Errorf("release %s: answered: %t, error %q", c.Name, ok, answer.GetError())
	}
	return nil
}
