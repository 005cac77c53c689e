package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

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
			files := metadataFiles{pluginDir: filepath.Join(r.dir, "plugin"), cdiDir: filepath.Join(r.dir, "cdi")}
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
			successor := journal.Claim{Namespace: ref.Namespace, Name: ref.Name, UID: "another"}
			if err := files.Remove(ref, []journal.Record{{UID: "another", Entry: &journal.Entry{Claim: successor}}}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(files.dir(ref)); err != nil {
				t.Errorf("the successor's files: %v", err)
			}
			if err := files.Remove(successor, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(files.dir(ref)); !os.IsNotExist(err) {
				t.Errorf("files of nobody: %v", err)
			}
		})
	}
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
