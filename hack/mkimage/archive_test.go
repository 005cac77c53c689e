package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func entries(t *testing.T, r io.Reader) (names []string, data map[string][]byte) {
	t.Helper()
	data = map[string][]byte{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return names, data
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if data[h.Name], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
	}
}

func TestArchive(t *testing.T) {
	write := func(files ...file) []byte {
		out := filepath.Join(t.TempDir(), "image.tar")
		if _, err := writeArchive(options{out: out, ref: "a/b:c"}, complete(files)); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	agent := file{name: "usr/bin/agent", mode: 0o755, data: []byte("x")}
	group := file{name: "etc/group", mode: 0o644, data: []byte("y")}
	image := write(agent, group)
	if !bytes.Equal(image, write(group, agent)) {
		t.Error("the same files in another order give other bytes")
	}

	_, parts := entries(t, bytes.NewReader(image))
	var manifest []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(parts["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 1 || manifest[0].RepoTags[0] != "a/b:c" || parts[manifest[0].Config] == nil {
		t.Errorf("manifest %+v does not fit the archive", manifest)
	}
	names, _ := entries(t, bytes.NewReader(parts[manifest[0].Layers[0]]))
	want := []string{"etc/", "etc/group", "usr/", "usr/bin/", "usr/bin/agent"}
	if !slices.Equal(names, want) {
		t.Errorf("the layer has %q, want %q: parents first", names, want)
	}
}
