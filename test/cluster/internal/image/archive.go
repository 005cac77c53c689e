package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
)

// File is one entry of an image: a link, a file with a source, or a directory.
type File struct {
	Path   string
	Source string
	Link   string
}

// Write writes an image of one layer, as `docker save` would. The same files give
// the same archive, byte for byte.
func Write(file, ref string, entrypoint []string, files []File) error {
	layer, err := layer(files)
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": entrypoint, "Env": []string{"PATH=/bin:/usr/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%x.json", sha256.Sum256(config))
	manifest, err := json.Marshal([]map[string]any{{"Config": name, "RepoTags": []string{ref}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err = errors.Join(
		add(w, tar.Header{Name: name, Mode: 0o644}, config),
		add(w, tar.Header{Name: "layer.tar", Mode: 0o644}, layer),
		add(w, tar.Header{Name: "manifest.json", Mode: 0o644}, manifest),
		w.Close(),
	)
	return errors.Join(err, os.WriteFile(file, out.Bytes(), 0o644))
}

func layer(files []File) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		var data []byte
		h := tar.Header{Name: f.Path, Mode: 0o755}
		switch {
		case f.Link != "":
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Link, 0o777
		case f.Source != "":
			var err error
			if data, err = os.ReadFile(f.Source); err != nil {
				return nil, err
			}
		default:
			h.Name, h.Typeflag = f.Path+"/", tar.TypeDir
			if f.Path == "tmp" {
				h.Mode = 0o1777
			}
		}
		if err := add(w, h, data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

func add(w *tar.Writer, h tar.Header, data []byte) error {
	h.Size, h.Format = int64(len(data)), tar.FormatPAX
	if err := w.WriteHeader(&h); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}
