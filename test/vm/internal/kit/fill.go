package kit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dovetail-dra/dovetail/test/vm/internal/debian"
)

// fill downloads the packages and lays them out in dir: qemu, kernel and headers,
// and the file version.
func fill(ctx context.Context, dir string) error {
	downloads := filepath.Join(dir, "deb")
	if err := os.MkdirAll(downloads, 0o755); err != nil {
		return err
	}
	apt, err := debian.Open(ctx, filepath.Join(dir, "apt"))
	if err != nil {
		return err
	}
	from, ok := releases[apt.Codename]
	if !ok {
		return fmt.Errorf("QEMU and kernel are known by name for Debian 12 (bookworm), not for %s: add it in test/vm/internal/kit: %w", apt.Codename, debian.ErrUnavailable)
	}
	packages, err := apt.Closure(ctx, from.qemuSuite, qemuPackages...)
	if err != nil {
		return err
	}
	const imagePrefix = "linux-image-"
	image, err := apt.Depends(ctx, from.kernel, imagePrefix)
	if err != nil {
		return err
	}
	version := strings.TrimPrefix(image, imagePrefix)
	abi := strings.TrimSuffix(version, "-amd64")
	packages = append(packages, image, "linux-headers-"+version, "linux-headers-"+abi+"-common", "linux-kbuild-"+abi)
	debs, err := apt.Download(ctx, downloads, packages...)
	if err != nil {
		return err
	}
	for _, deb := range debs {
		if err := debian.Unpack(ctx, deb, filepath.Join(dir, part(filepath.Base(deb)))); err != nil {
			return err
		}
	}
	if err := relocate(headers(dir, version)); err != nil {
		return err
	}
	for _, done := range []string{"deb", "apt"} {
		if err := os.RemoveAll(filepath.Join(dir, done)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "version"), []byte(version+"\n"), 0o644)
}

// part is the folder that a package is unpacked into.
func part(deb string) string {
	switch {
	case strings.HasPrefix(deb, "linux-image-"):
		return "kernel"
	case strings.HasPrefix(deb, "linux-headers-"), strings.HasPrefix(deb, "linux-kbuild-"):
		return "headers"
	}
	return "qemu"
}

func headers(dir, version string) string {
	return filepath.Join(dir, "headers", "usr", "src", "linux-headers-"+version)
}

// relocate makes the headers usable wherever they lie: their Makefile includes one
// by its place below /usr/src.
func relocate(headers string) error {
	name := filepath.Join(headers, "Makefile")
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	const installed, here = "include /usr/src/", "include $(dir $(lastword $(MAKEFILE_LIST)))../"
	text := strings.Replace(string(data), installed, here, 1)
	if text == string(data) {
		return fmt.Errorf("%s has no line %q…: the package has changed, and this program must, too", name, installed)
	}
	return os.WriteFile(name, []byte(text), 0o644)
}
