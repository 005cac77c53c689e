package classwatch

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

func TestRecord(t *testing.T) {
	dir := t.TempDir()
	if known, err := Read(dir); err != nil || len(known.Classes) > 0 {
		t.Errorf("without an agent: %+v, %v", known, err)
	}
	want := Known{Classes: []v1alpha1.PartitionClass{*classOf("a", "1g.10gb")}, NodeLabels: map[string]string{"pool": "a"}}
	if err := want.Write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Read(dir)
	if err != nil || !equality.Semantic.DeepEqual(got.Classes, want.Classes) || !reflect.DeepEqual(got.NodeLabels, want.NodeLabels) {
		t.Errorf("read %+v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, record), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), record+": ") || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("damaged: %v", err)
	}
}
