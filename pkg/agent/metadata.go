package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	dramet "k8s.io/dynamic-resource-allocation/api/metadata"
	metadatav1beta1 "k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/failure"
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

// metadataFiles are what the plugin helper writes for claims (KEP-5304): a file for
// each request below pluginDir, and a CDI specification that mounts it. The helper
// writes them when a claim is prepared, and never again.
type metadataFiles struct {
	pluginDir, cdiDir string
	// recorded says whether the claim of a UID is on record.
	recorded func(uid string) bool
	// discard removes a directory.
	discard func(path string) error
}

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

// Restore writes the CDI specifications of a claim's metadata that are gone.
func (f metadataFiles) Restore(c journal.Claim) error {
	requests, err := os.ReadDir(f.dir(c))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, request := range requests {
		if _, err := os.Stat(f.spec(c.UID, request.Name())); errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, f.restore(c, request.Name()))
		}
	}
	return errors.Join(errs...)
}

func (f metadataFiles) restore(c journal.Claim, request string) error {
	path := f.file(c, request)
	m, err := readMetadata(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.EOF):
		return nil // the helper has not written it: the kubelet was not answered yet, and calls again
	case err != nil:
		return err
	case string(m.UID) != c.UID:
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
func (f metadataFiles) Remove(c journal.Claim) error {
	paths, err := filepath.Glob(f.spec(c.UID, "*"))
	errs := []error{err}
	for _, path := range paths {
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(append(errs, f.RemoveAll(f.dir(c)))...)
}

// RemoveAll removes the directory of a claim that was released. It has the claim's name,
// and may be its successor's by now, which is on record then.
func (f metadataFiles) RemoveAll(claimDir string) error {
	return f.alone(claimDir, func() error {
		if f.taken(claimDir) {
			return nil
		}
		return f.discard(claimDir)
	})
}

// onRecord is what metadataFiles.recorded is: a record that cannot be read is one, too.
func onRecord(records *journal.Journal) func(uid string) bool {
	return func(uid string) bool {
		_, err := records.Get(uid)
		return !errors.Is(err, failure.Absent)
	}
}

// taken says whether the helper has written any of a directory for a claim that is on
// record.
func (f metadataFiles) taken(claimDir string) bool {
	requests, err := os.ReadDir(claimDir)
	return err == nil && slices.ContainsFunc(requests, func(request fs.DirEntry) bool {
		m, err := readMetadata(filepath.Join(claimDir, request.Name(), metadataFile))
		return err == nil && f.recorded(string(m.UID))
	})
}

// readMetadata reads what the helper has written for a request: the same in one or several
// versions, of which the first does. io.EOF where it has written nothing yet.
func readMetadata(path string) (m metadatav1beta1.DeviceMetadata, err error) {
	file, err := os.Open(path)
	if err != nil {
		return m, err
	}
	defer func() { _ = file.Close() }()
	if err := json.NewDecoder(file).Decode(&m); err != nil {
		return m, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}
