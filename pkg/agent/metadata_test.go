package agent

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	dramet "k8s.io/dynamic-resource-allocation/api/metadata"
	"k8s.io/dynamic-resource-allocation/devicemetadata"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/journal"
)

// What the plugin helper wrote is put back as it was, however the claim was made.
func TestMetadataIsRestored(t *testing.T) {
	for name, annotations := range map[string]map[string]string{
		"a claim":           nil,
		"from-a-template-x": {"resource.kubernetes.io/pod-claim-name": "gpu"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, nil)
			c := r.createWith("a", "", annotations, "gpu-1b-00")
			if response, err := r.prepare(c); err != nil || response.Error != "" {
				t.Fatalf("prepare: %v, %v", response, err)
			}
			files := metadataFiles{pluginDir: filepath.Join(r.dir, "plugin"), cdiDir: filepath.Join(r.dir, "cdi"), discard: os.RemoveAll}
			path := files.spec(c.Uid, "gpu")
			before := decoded(t, path)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			ref := journal.Claim{Namespace: c.Namespace, Name: c.Name, UID: c.Uid}
			if err := files.Restore(ref); err != nil {
				t.Fatal(err)
			}
			if after := decoded(t, path); !reflect.DeepEqual(after, before) {
				t.Errorf("restored %v, was %v", after, before)
			}
			files.recorded = func(uid string) bool { return uid == ref.UID }
			if err := files.Remove(journal.Claim{Namespace: ref.Namespace, Name: ref.Name, UID: "of-the-earlier"}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(files.dir(ref)); err != nil {
				t.Errorf("the successor's files: %v", err)
			}
			files.recorded = func(string) bool { return false }
			if err := files.Remove(ref); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(files.dir(ref)); !os.IsNotExist(err) {
				t.Errorf("files of nobody: %v", err)
			}
		})
	}
}

// The workload is told all that is published of its device, also what classes have it
// say.
func TestMetadataIsWhatIsPublished(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	large := partitions("third", "3g.40gb")
	large.Spec.Hardware.MinMemory = ptr.To(resource.MustParse("70Gi"))
	r.classes.Add(large)
	const partition, share = "mig-1b-00-3g40gb-4", "mps-43-00"
	var published map[string]resourceapi.Device
	r.published("a class that tells partitions apart", func(devices map[string]resourceapi.Device) bool {
		published = devices
		code := devices[partition].Attributes[catalog.AttributeClassConditions].StringValue
		_, there := devices[share] // all slices have come
		return there && code != nil && *code != ""
	})
	for name, device := range map[string]string{"a": partition, "b": share} {
		c := r.create(name, "", device)
		if response, err := r.prepare(c); err != nil || response.Error != "" {
			t.Fatalf("prepare: %v, %v", response, err)
		}
		var told dramet.DeviceMetadata
		path := filepath.Join(r.dir, "plugin/dra-device-metadata/default_"+name+"/gpu/metadata.json")
		content, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		err = devicemetadata.DecodeMetadataFromStream(json.NewDecoder(content), &told)
		if err = errors.Join(err, content.Close()); err != nil {
			t.Fatal(err)
		}
		got, want := told.Requests[0].Devices[0].Attributes, published[device].Attributes
		if device == partition { // it has been made meanwhile
			want["uuid"] = got["uuid"]
		}
		if !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: told, then published:\n%s\n%s", device, text(t, got), text(t, want))
		}
	}
}

func text(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func decoded(t *testing.T, path string) (content map[string]any) {
	t.Helper()
	encoded, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(encoded, &content); err != nil {
		t.Fatal(err)
	}
	return content
}
