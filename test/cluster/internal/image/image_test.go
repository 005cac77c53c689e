package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	if err := os.WriteFile(source, []byte("program"), 0o644); err != nil {
		t.Fatal(err)
	}
	files := []File{{Path: "bin"}, {Path: "bin/p", Source: source}, {Path: "bin/q", Link: "p"}, {Path: "tmp"}}
	var archives [][]byte
	for _, name := range []string{"a", "b"} {
		file := filepath.Join(dir, name)
		if err := Write(file, "registry.local/x:1", []string{"/bin/p"}, files); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, b)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the same files gave different archives")
	}
	outer := untar(t, archives[0])
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(outer["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	if m := manifest[0]; m.RepoTags[0] != "registry.local/x:1" || outer[m.Config] == nil {
		t.Errorf("manifest %+v", m)
	}
	if got := untar(t, outer[manifest[0].Layers[0]]); string(got["bin/p"]) != "program" || len(got) != 4 {
		t.Errorf("layer has %v", got)
	}
}

func untar(t *testing.T, b []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
