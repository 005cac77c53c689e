package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/journal"
)

// twoAllocated is claim a of namespace default, with two GPUs for one request.
func twoAllocated() *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "uid-a"}}
	c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{
		{Request: "gpu/large", Driver: catalog.DriverName, Device: "gpu-1b-00"},
		{Request: "gpu/large", Driver: catalog.DriverName, Device: "gpu-43-00"},
		{Request: "other", Driver: "another.example.com", Device: "x"},
	}}}
	return c
}

// What is made ahead is taken for the helper's when the helper has written it.
func TestMetadataAhead(t *testing.T) {
	files := metadataFiles{pluginDir: t.TempDir(), cdiDir: t.TempDir()}
	c := twoAllocated()
	ref := journal.Claim{Namespace: "default", Name: "a", UID: "uid-a"}
	left := func() (names []string) {
		all, err := filepath.Glob(filepath.Join(files.pluginDir, "dra-device-metadata", "*", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range all {
			names = append(names, strings.TrimPrefix(path, files.dir(ref)+"/"))
		}
		return names
	}

	files.Ahead(c)(false)
	if dirs, err := os.ReadDir(filepath.Join(files.pluginDir, "dra-device-metadata")); err != nil || len(dirs) > 0 {
		t.Errorf("left of a claim that was refused: %v, %v", dirs, err)
	}
	files.Ahead(c)(true)
	if got := left(); !slices.Equal(got, []string{"gpu/metadata.json"}) {
		t.Errorf("made: %q", got)
	}
	if err := files.Restore(ref); err != nil { // after a crash
		t.Errorf("restore what was never written: %v", err)
	}
	if _, err := os.Stat(files.spec(ref.UID, "gpu")); !os.IsNotExist(err) {
		t.Errorf("specification of what was never written: %v", err)
	}
	for range 2 { // into what was made, and over what there is
		if err := files.WriteFile(files.file(ref, "gpu"), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
		files.Ahead(c)(false)
		if content, err := os.ReadFile(files.file(ref, "gpu")); err != nil || string(content) != "{}" {
			t.Errorf("content %q, %v", content, err)
		}
	}
}

// The kubelet asks for one claim twice at once, for two Pods: a call that is refused takes
// nothing from one that is not, wherever the helper is then.
func TestMetadataOfACallBesideOneThatIsRefused(t *testing.T) {
	files := metadataFiles{pluginDir: t.TempDir(), cdiDir: t.TempDir()}
	path := files.file(journal.Claim{Namespace: "default", Name: "a"}, "gpu")
	refused := files.Ahead(twoAllocated())
	files.Ahead(twoAllocated())(true)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // as the helper does
		t.Fatal(err)
	}
	refused(false)
	if err := files.WriteFile(path, []byte("{}"), 0o644); err != nil {
		t.Errorf("the claim that was prepared: %v", err)
	}

	for range 300 {
		if err := os.RemoveAll(files.dir(journal.Claim{Namespace: "default", Name: "a"})); err != nil {
			t.Fatal(err)
		}
		refused := files.Ahead(twoAllocated())
		files.Ahead(twoAllocated())(true)
		done := make(chan struct{})
		go func() { refused(false); close(done) }()
		err := files.WriteFile(path, []byte("{}"), 0o644)
		<-done
		if content, readErr := os.ReadFile(path); err != nil || readErr != nil || string(content) != "{}" {
			t.Fatalf("written: %v; then %q, %v", err, content, readErr)
		}
	}
}

// A release that ends late leaves what the claim's successor has by the same name.
func TestMetadataOfASuccessorStays(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	c := r.create("a", claimtest.Exclusive, "gpu-1b-00")
	if response, err := r.prepare(c); err != nil || response.Error != "" {
		t.Fatalf("prepare: %v, %v", response, err)
	}
	r.unprepare(&drapb.Claim{Namespace: c.Namespace, Name: c.Name, Uid: "uid-of-the-earlier"})
	if got := r.files(); len(got) != 4 { // record, CDI spec, metadata and its CDI spec
		t.Errorf("files %q", got)
	}
	r.unprepare(c)
	if got := r.files(); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}
