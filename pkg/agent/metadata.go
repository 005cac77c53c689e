package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	dramet "k8s.io/dynamic-resource-allocation/api/metadata"
	"k8s.io/dynamic-resource-allocation/devicemetadata"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/atomicfile"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// metadata tells the workload what is published of its device by that offer, and the
// UUID of a partition, which has none until it is made; and of a NIC, what it is in the
// Pod.
func metadata(m *machine.Machine, offer catalog.Offer, d claim.Device) *kubeletplugin.DeviceMetadata {
	device := d.Hardware
	if device.Kind == "" {
		return nil
	}
	attributes := map[string]resourceapi.DeviceAttribute{}
	for name, value := range catalog.Attributes(*m, device, offer) {
		attributes[string(name)] = value
	}
	if device.Kind.HasGPU() {
		attributes["uuid"] = resourceapi.DeviceAttribute{StringValue: &d.UUID}
	}
	told := &kubeletplugin.DeviceMetadata{Attributes: attributes}
	if d.NIC != nil {
		told.NetworkData = networkOf(d.NIC)
	}
	return told
}

// writeDerived writes files that are made again with the next call: they need not
// survive a power cut. What Ahead has made is nobody's yet, and is written as it is.
func writeDerived(path string, content []byte, mode os.FileMode) error {
	if filepath.Base(path) == metadataFile && isEmpty(path) {
		return os.WriteFile(path, content, mode)
	}
	return atomicfile.Writer{Dir: filepath.Dir(path), Mode: mode}.Write(filepath.Base(path), content)
}

// metadataFiles are what the plugin helper writes for claims (KEP-5304): a file for
// each request below pluginDir, and a CDI specification that mounts it. The helper
// writes them when a claim is prepared, and never again.
type metadataFiles struct{ pluginDir, cdiDir string }

func (f metadataFiles) dir(c journal.Claim) string {
	return filepath.Join(f.pluginDir, "dra-device-metadata", c.Namespace+"_"+c.Name)
}

// metadataFile is the name of the one file of a request.
const metadataFile = "metadata.json"

func (f metadataFiles) file(c journal.Claim, request string) string {
	return filepath.Join(f.dir(c), request, metadataFile)
}

func (f metadataFiles) spec(uid, request string) string {
	return filepath.Join(f.cdiDir, catalog.DriverName+"_metadata_"+uid+"_"+request+".json")
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
		for _, dir := range dirs {
			if path := filepath.Join(dir, metadataFile); isEmpty(path) {
				_ = os.Remove(path)
			}
			_ = os.Remove(dir) // stays where there are files from before
		}
		_ = os.Remove(claimDir)
	}
}

// isEmpty says whether Ahead has made a file, and the helper has not written it.
func isEmpty(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() == 0
}

// Restore writes the CDI specifications of a claim's metadata that are gone.
func (f metadataFiles) Restore(c journal.Claim) error {
	requests, err := os.ReadDir(f.dir(c))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, request := range requests {
		if _, err := os.Stat(f.spec(c.UID, request.Name())); errors.Is(err, fs.ErrNotExist) && f.written(c, request.Name()) {
			errs = append(errs, f.restore(c, request.Name()))
		}
	}
	return errors.Join(errs...)
}

// written says whether the helper came to write the metadata: else the kubelet was not
// answered yet, and calls again.
func (f metadataFiles) written(c journal.Claim, request string) bool {
	info, err := os.Stat(f.file(c, request))
	return err == nil && info.Size() > 0
}

func (f metadataFiles) restore(c journal.Claim, request string) error {
	path := f.file(c, request)
	content, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	var m dramet.DeviceMetadata
	if err := devicemetadata.DecodeMetadataFromStream(json.NewDecoder(content), &m); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if string(m.UID) != c.UID {
		return nil // its successor's, by name
	}
	inside := dramet.ResourceClaimFilePath(catalog.DriverName, c.Name, request)
	if m.PodClaimName != nil && *m.PodClaimName != "" {
		inside = dramet.ResourceClaimTemplateFilePath(catalog.DriverName, *m.PodClaimName, request)
	}
	spec := &specs.Spec{Kind: catalog.DriverName + "/metadata", Devices: []specs.Device{{
		Name: c.UID + "_" + request,
		ContainerEdits: specs.ContainerEdits{Mounts: []*specs.Mount{{
			HostPath: path, ContainerPath: inside, Options: []string{"ro", "bind"},
		}}},
	}}}
	if spec.Version, err = specs.MinimumRequiredVersion(spec); err != nil {
		return err
	}
	encoded, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return writeDerived(f.spec(c.UID, request), encoded, 0o644)
}

// Remove removes the files of a claim that is released without the kubelet's asking.
// Their directory has the claim's name, and may be its successor's by now: others
// are the claims on record.
func (f metadataFiles) Remove(c journal.Claim, others []journal.Record) error {
	paths, err := filepath.Glob(f.spec(c.UID, "*"))
	errs := []error{err}
	for _, path := range paths {
		errs = append(errs, os.Remove(path))
	}
	for _, r := range others {
		if r.Entry == nil || r.Entry.Claim.Namespace == c.Namespace && r.Entry.Claim.Name == c.Name {
			return errors.Join(errs...)
		}
	}
	return errors.Join(append(errs, os.RemoveAll(f.dir(c)))...)
}
