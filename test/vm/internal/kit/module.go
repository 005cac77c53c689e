package kit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/dovetail-dra/dovetail/test/vm/internal/debian"
)

// The programs that a module is built with and read by, and the packages that
// they are of.
var programs = map[string]string{"gcc-12": "gcc-12", "make": "make", "strip": "binutils", "xz": "xz-utils"}

// Module builds a kernel module from the source NAME.c, once for each content, and
// returns NAME.ko.
func (k Kit) Module(ctx context.Context, log io.Writer, source string) (string, error) {
	for program, pkg := range programs {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%s is missing, which Debian has in the package %s (hack/setup.sh installs it): %w", program, pkg, debian.ErrUnavailable)
		}
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	name := strings.TrimSuffix(filepath.Base(source), ".c")
	dir := filepath.Join(k.dir, fmt.Sprintf("module-%s-%.6x", name, sha256.Sum256(text)))
	object := filepath.Join(dir, name+".ko")
	if _, err := os.Stat(object); err == nil {
		return object, nil
	}
	began := time.Now()
	partial, err := os.MkdirTemp(k.dir, "building-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(partial) }()
	for file, content := range map[string]string{name + ".c": string(text), "Makefile": "obj-m := " + name + ".o\n"} {
		if err := os.WriteFile(filepath.Join(partial, file), []byte(content), 0o644); err != nil {
			return "", err
		}
	}
	// Types of the kernel in BTF would need its whole image, and pahole.
	if err := quietly(ctx, "make", "-s", "-C", headers(k.dir, k.Version), "M="+partial, "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"); err != nil {
		return "", fmt.Errorf("kernel module %s: %w", name, err)
	}
	if err := quietly(ctx, "strip", "--strip-debug", filepath.Join(partial, name+".ko")); err != nil {
		return "", err
	}
	if err := os.Rename(partial, dir); err != nil {
		if _, other := os.Stat(object); other == nil {
			return object, nil // somebody else was quicker
		}
		return "", err
	}
	fmt.Fprintf(log, "built the kernel module %s for %s in %s\n", name, k.Version, time.Since(began).Round(time.Second))
	return object, nil
}

func quietly(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}
