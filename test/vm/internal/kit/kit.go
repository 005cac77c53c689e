// Package kit gets what the virtual machine is made of: QEMU, a kernel and what
// is needed to build a module for it. All of it comes from Debian's packages,
// once, and is kept in the project's cache.
package kit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/dovetail-dra/dovetail/hack/toolbox"
	"github.com/dovetail-dra/dovetail/pkg/lock"
	"github.com/dovetail-dra/dovetail/test/vm/internal/debian"
)

// What a release of Debian has it under. igb, the NIC with SR-IOV, came with
// QEMU 8. The series of the kernel is that of the recent long-term one.
var releases = map[string]struct{ qemuSuite, kernel string }{
	"bookworm": {"bookworm-backports", "linux-image-6.12-amd64"},
}

// The packages whose files QEMU reads while it runs. They are named one by one so
// that those installed on this machine, perhaps older ones, are got as well.
var qemuPackages = []string{"qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios", "ipxe-qemu"}

// layout changes with what fill does, so that older kits are not used.
const layout = "1"

// Kit is a folder that is whole and does not change.
type Kit struct {
	dir string
	// Version of the kernel, as "6.12.117+deb12-amd64".
	Version string
}

// Open finds the kit, or makes it; progress goes to log. An error that wraps
// debian.ErrUnavailable means that this machine cannot have one.
func Open(ctx context.Context, log io.Writer) (Kit, error) {
	if runtime.GOARCH != "amd64" {
		return Kit{}, fmt.Errorf("the virtual machine is an amd64 one, and this machine is %s: %w", runtime.GOARCH, debian.ErrUnavailable)
	}
	cache, err := toolbox.Cache()
	if err != nil {
		return Kit{}, err
	}
	dir := filepath.Join(cache, "vm-"+key())
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return Kit{}, err
	}
	unlock, err := lock.File(filepath.Join(cache, "vm.lock")).Lock(ctx, dir)
	if err != nil {
		return Kit{}, err
	}
	defer unlock()
	if k, err := there(dir); err == nil {
		return k, nil
	}
	if err := build(ctx, log, dir); err != nil {
		return Kit{}, fmt.Errorf("QEMU and a kernel as Debian's packages: %w", err)
	}
	return there(dir)
}

// key condenses what decides about the kit's content, but for the versions that
// the mirror has on the day.
func key() string {
	return fmt.Sprintf("%.6x", sha256.Sum256(fmt.Append(nil, layout, releases, qemuPackages)))
}

// there reads a kit that build has finished: it is renamed into place at the end.
func there(dir string) (Kit, error) {
	version, err := os.ReadFile(filepath.Join(dir, "version"))
	return Kit{dir: dir, Version: strings.TrimSpace(string(version))}, err
}

// build makes the kit beside its place and renames it.
func build(ctx context.Context, log io.Writer, dir string) (err error) {
	fmt.Fprintln(log, "getting QEMU and a kernel as Debian's packages, unpacked into the cache (once; some 130 MB)")
	began := time.Now()
	partial := dir + ".part"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(partial)
		}
	}()
	if err := fill(ctx, partial); err != nil {
		return err
	}
	if err := os.Rename(partial, dir); err != nil {
		return err
	}
	fmt.Fprintf(log, "got them in %s\n", time.Since(began).Round(time.Second))
	return nil
}

// QEMU is the emulator's program, and the arguments and environment without which
// it does not find its files.
func (k Kit) QEMU() (program string, args, env []string) {
	at := func(path string) string { return filepath.Join(k.dir, "qemu", path) }
	for _, share := range []string{"usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"} {
		args = append(args, "-L", at(share))
	}
	env = []string{"LD_LIBRARY_PATH=" + at("usr/lib/x86_64-linux-gnu") + ":" + at("lib/x86_64-linux-gnu")}
	return at("usr/bin/qemu-system-x86_64"), args, env
}

// Kernel is the kernel's image.
func (k Kit) Kernel() string { return filepath.Join(k.dir, "kernel", "boot", "vmlinuz-"+k.Version) }

// Modules is the folder of the kernel's modules.
func (k Kit) Modules() string { return filepath.Join(k.dir, "kernel", "lib", "modules", k.Version) }
