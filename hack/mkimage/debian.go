package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/dovetail-dra/dovetail/hack/sharedlib"
	"github.com/dovetail-dra/dovetail/hack/toolbox"
)

// always are the libraries that NVML, which the programs load when they run, is
// linked to; their own are read from their binaries.
var always = []string{"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}

// libraries are the loader and the libraries for the programs. They come from
// Debian's packages at the versions installed here, which are those that the
// programs were linked with.
func libraries(ctx context.Context, programs ...string) ([]file, error) {
	paths, err := sharedlib.Of(always, programs...)
	if err != nil {
		return nil, fmt.Errorf("the image: %w; on other systems build it with the Containerfile", err)
	}
	byPackage := map[string]map[string]string{}
	for name, at := range paths {
		pkg, err := owner(ctx, at)
		if err != nil {
			return nil, err
		}
		if byPackage[pkg] == nil {
			byPackage[pkg] = map[string]string{}
		}
		byPackage[pkg][name] = at
	}
	var files []file
	for pkg, wanted := range byPackage {
		deb, err := download(ctx, pkg)
		if err != nil {
			return nil, err
		}
		got, err := unpack(ctx, deb, wanted)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", deb, err)
		}
		files = append(files, got...)
	}
	return files, nil
}

// owner is the Debian package that has a file. Where /lib is a link to /usr/lib
// a package may know the file by either name.
func owner(ctx context.Context, at string) (string, error) {
	for _, name := range []string{at, "/usr" + at, strings.TrimPrefix(at, "/usr")} {
		out, err := exec.CommandContext(ctx, "dpkg-query", "-S", name).Output()
		if errors.Is(err, exec.ErrNotFound) {
			return "", errors.New("dpkg-query is not here: this way of building an image needs Debian; elsewhere use the Containerfile")
		}
		if err == nil {
			pkg, _, _ := strings.Cut(string(out), ": ")
			return pkg, nil
		}
	}
	return "", fmt.Errorf("no Debian package has %s", at)
}

// download fetches a package at the version installed here, or where the mirror
// has moved on the next one, and keeps it in the cache.
func download(ctx context.Context, pkg string) (string, error) {
	out, err := exec.CommandContext(ctx, "dpkg-query", "-W", "-f", "${Version}", pkg).Output()
	if err != nil {
		return "", fmt.Errorf("dpkg-query -W %s: %w", pkg, err)
	}
	version := string(out)
	cache, err := toolbox.Cache()
	if err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(pkg, ":")
	dir := filepath.Join(cache, "debian", name+"_"+strings.ReplaceAll(version, ":", "%3a"))
	if debs, _ := filepath.Glob(filepath.Join(dir, "*.deb")); len(debs) == 1 {
		return debs[0], nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "download")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	if err := os.Chmod(fresh, 0o755); err != nil {
		return "", err
	}
	var said []byte
	for _, what := range []string{pkg + "=" + version, pkg} {
		cmd := exec.CommandContext(ctx, "apt-get", "-q", "-o", "APT::Sandbox::User=", "download", what)
		cmd.Dir = fresh
		if said, err = cmd.CombinedOutput(); err == nil {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("apt-get download %s: %w\n%s(are the package lists here? apt-get update gets them)", pkg, err, said)
	}
	debs, _ := filepath.Glob(filepath.Join(fresh, "*.deb"))
	if len(debs) != 1 {
		return "", fmt.Errorf("apt-get download %s left %d packages, not one", pkg, len(debs))
	}
	_ = os.RemoveAll(dir)
	if err := os.Rename(fresh, dir); err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(debs[0])), nil
}

// unpack takes the wanted files out of a package, following the links in it.
// Wanted maps a base name to the path that the file is to have.
func unpack(ctx context.Context, deb string, wanted map[string]string) ([]file, error) {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	data, links := map[string][]byte{}, map[string]string{}
	for r := tar.NewReader(out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		// The same library lies in other folders, too, for other processors.
		if name := path.Base(h.Name); h.Typeflag == tar.TypeSymlink {
			links[name] = path.Base(h.Linkname)
		} else if h.Typeflag == tar.TypeReg && strings.Contains(name, ".so") && data[name] == nil {
			if data[name], err = io.ReadAll(r); err != nil {
				return nil, err
			}
		}
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("dpkg-deb: %w: %s", err, stderr.String())
	}
	files := make([]file, 0, len(wanted))
	for name, at := range wanted {
		found := name
		for hops := 0; data[found] == nil && links[found] != "" && hops < 8; hops++ {
			found = links[found]
		}
		if data[found] == nil {
			return nil, fmt.Errorf("the package has no %s", name)
		}
		files = append(files, file{name: strings.TrimPrefix(at, "/"), mode: 0o755, data: data[found]})
	}
	return files, nil
}
