package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/dovetail-dra/dovetail/pkg/atomicfile"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/lock"
)

// alone changes what is in a claim's directory while nobody else does, in this process or
// another: the kubelet may ask for one claim twice at once, for two Pods, and the plugin
// helper writes when the call has lost the claim's lock.
func (f metadataFiles) alone(claimDir string, change func() error) error {
	unlock, err := lock.File(filepath.Join(f.pluginDir, "lock")).Lock(context.Background(), "metadata-"+filepath.Base(claimDir))
	if err != nil {
		return err
	}
	defer unlock()
	return change()
}

// WriteFile is how the plugin helper writes. What Ahead has made is nobody's yet, and is
// written as it is; a call that was refused may have removed it again.
func (f metadataFiles) WriteFile(path string, content []byte, mode os.FileMode) error {
	if filepath.Base(path) != metadataFile {
		return writeDerived(path, content, mode)
	}
	dir := filepath.Dir(path)
	return f.alone(filepath.Dir(dir), func() error {
		if isEmpty(path) {
			err := os.WriteFile(path, content, mode)
			if err != nil { // a part of it is none
				err = errors.Join(err, os.Truncate(path, 0))
			}
			return err
		}
		if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
			return nil // for one Pod more, which a full disk does not keep from it
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		return writeDerived(path, content, mode)
	})
}

// writeDerived writes files that are made again with the next call: they need not
// survive a power cut.
func writeDerived(path string, content []byte, mode os.FileMode) error {
	return atomicfile.Writer{Dir: filepath.Dir(path), Mode: mode}.Write(filepath.Base(path), content)
}

// Ahead makes the directories and the files, empty, that the helper will write for a
// claim, beside what else is done for the claim: the disk takes its time for each. The
// returned function waits for them, and removes them where nothing comes of the claim.
func (f metadataFiles) Ahead(c *resourceapi.ResourceClaim) (made func(wanted bool)) {
	claimDir := f.dir(journal.Claim{Namespace: c.Namespace, Name: c.Name})
	var dirs []string
	for _, r := range own(c) {
		dir := filepath.Join(claimDir, resourceclaim.BaseRequestRef(r.Request))
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		for _, dir := range dirs { // the helper tries for itself, and says what is wrong
			if os.MkdirAll(dir, 0o755) == nil {
				if file, err := os.OpenFile(filepath.Join(dir, metadataFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err == nil {
					_ = file.Close()
				}
			}
		}
	}()
	return func(wanted bool) {
		<-ready
		if wanted {
			return
		}
		_ = f.alone(claimDir, func() error { // what stays is empty, and goes with the claim's release
			for _, dir := range dirs {
				if path := filepath.Join(dir, metadataFile); isEmpty(path) {
					_ = os.Remove(path)
				}
				_ = os.Remove(dir) // stays where there are files from before
			}
			_ = os.Remove(claimDir)
			return nil
		})
	}
}

// isEmpty says whether Ahead has made a file, and the helper has not written it.
func isEmpty(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() == 0
}

// refuseWithout has the kubelet ask again where a claim's metadata could not be written: the
// helper only logs that, and the claim's containers would run without.
func (f metadataFiles) refuseWithout(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	response, err := handler(ctx, req)
	prepared, ok := response.(*drapb.NodePrepareResourcesResponse)
	if err != nil || !ok {
		return response, err
	}
	for uid, claim := range prepared.GetClaims() {
		if claim.GetError() == "" && len(claim.GetDevices()) > 0 && !slices.ContainsFunc(claim.GetDevices(), tellsMetadata) {
			prepared.Claims[uid] = &drapb.NodePrepareResourceResponse{Error: fmt.Sprintf(
				"claim with UID %s: its devices' metadata could not be written below %s or to %s: the log of dovetail-node on this node says why; look whether a disk is full",
				uid, f.pluginDir, f.cdiDir)}
		}
	}
	return response, nil
}

// tellsMetadata says whether a device brings the container its request's metadata.
func tellsMetadata(d *drapb.Device) bool {
	return slices.ContainsFunc(d.GetCdiDeviceIds(), func(id string) bool { return strings.HasPrefix(id, catalog.DriverName+"/metadata=") })
}
