package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// file is one entry of the image; a folder has no data.
type file struct {
	name string // without the leading slash
	mode fs.FileMode
	data []byte
}

// complete adds the folders that files lie in, and sorts, parents first.
func complete(files []file) []file {
	have := map[string]bool{}
	for _, f := range files {
		have[f.name] = true
	}
	for _, f := range files {
		for dir := path.Dir(f.name); dir != "." && !have[dir]; dir = path.Dir(dir) {
			have[dir] = true
			files = append(files, file{name: dir, mode: fs.ModeDir | 0o755})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return files
}

// epoch stands for every time in the image.
var epoch = time.Unix(0, 0).UTC()

func layer(files []file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: int64(f.mode.Perm()), Typeflag: tar.TypeReg, Size: int64(len(f.data)), ModTime: epoch, Format: tar.FormatPAX}
		if f.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if f.mode.IsDir() {
			h.Typeflag, h.Name = tar.TypeDir, f.name+"/"
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}

// writeArchive writes a docker-archive: the layer, the configuration, and the
// manifest that names both.
func writeArchive(o options, files []file) (int, error) {
	blob, err := layer(files)
	if err != nil {
		return 0, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"created":      epoch.Format(time.RFC3339),
		"config": map[string]any{
			"Entrypoint": []string{"/usr/bin/" + o.program()},
			"Env":        []string{"PATH=/usr/bin"},
			"WorkingDir": "/",
			"Labels": map[string]string{
				"org.opencontainers.image.title":    o.program(),
				"org.opencontainers.image.version":  o.version,
				"org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(blob))}},
	})
	if err != nil {
		return 0, err
	}
	configName := fmt.Sprintf("%x.json", sha256.Sum256(config))
	manifest, err := json.Marshal([]map[string]any{{"Config": configName, "RepoTags": []string{o.ref}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return 0, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []file{{name: configName, data: config}, {name: "layer.tar", data: blob}, {name: "manifest.json", data: manifest}} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Typeflag: tar.TypeReg, Size: int64(len(f.data)), ModTime: epoch, Format: tar.FormatPAX}); err != nil {
			return 0, err
		}
		if _, err := w.Write(f.data); err != nil {
			return 0, err
		}
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	return b.Len(), replaceFile(o.out, &b)
}

// replaceFile leaves either the old file or the whole new one.
func replaceFile(name string, data io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if _, err := io.Copy(f, data); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
