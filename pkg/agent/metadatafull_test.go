package agent

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/journal"
)

// On a full disk metadata is not written, or as a whole; what is there stays good.
func TestMetadataOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	files, content := metadataFiles{pluginDir: dir, cdiDir: t.TempDir()}, bytes.Repeat([]byte("{}"), 5000)
	ref := journal.Claim{Namespace: "default", Name: "a", UID: "uid-a"}
	path, ballast := files.file(ref, "gpu"), filepath.Join(dir, "ballast")
	files.Ahead(twoAllocated())(true)
	if err := os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fill := func() {
		if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the disk is not full: %v", err)
		}
	}
	fill()
	info, err := os.Stat(ballast)
	if err == nil {
		err = os.Truncate(ballast, info.Size()-4096) // place for a part
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := files.WriteFile(path, content, 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v", err)
	}
	if !isEmpty(path) {
		t.Error("there is a part")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for range 2 { // for one Pod, and for another when the disk is full
		if err := files.WriteFile(path, content, 0o644); err != nil {
			t.Error(err)
		}
		fill()
	}
	if there, err := os.ReadFile(path); err != nil || !bytes.Equal(there, content) {
		t.Errorf("%d bytes, %v", len(there), err)
	}
}

// Without its metadata a claim is not ready: the plugin helper only logs why.
func TestClaimWithoutMetadataIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	inTheWay := filepath.Join(r.dir, "plugin", "dra-device-metadata")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := r.create("a", claimtest.Exclusive, "gpu-1b-00")
	response, err := r.prepare(c)
	if err != nil || !strings.Contains(response.Error, "metadata could not be written below "+filepath.Join(r.dir, "plugin")) || len(response.Devices) > 0 {
		t.Errorf("prepare: %v, %v", response, err)
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if response, err := r.prepare(c); err != nil || response.Error != "" || !slices.ContainsFunc(response.Devices, tellsMetadata) {
		t.Errorf("prepare, when it can be written: %v, %v", response, err)
	}
}
