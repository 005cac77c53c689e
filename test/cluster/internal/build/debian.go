package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/image"
)

// need is one thing that the build or the cluster takes from the system.
type need struct {
	pkg  string // Debian's package
	have func() bool
}

// compiling is what programs are built with.
var compiling = []need{
	{"gcc", program("gcc")},
	{"libc6-dev", file("/usr/include/stdlib.h")},
	{"pkg-config", program("pkg-config")},
	{"libseccomp-dev", func() bool { return exec.Command("pkg-config", "--exists", "libseccomp").Run() == nil }},
}

// running is what else the images and the cluster take.
var running = []need{
	{"busybox-static", func() bool { return image.Static(image.Busybox) }},
	{"iproute2", program("ip")},
	{"util-linux", program("nsenter")},
	{"mount", program("mount")},
	{"procps", program("ps")},
}

func program(name string) func() bool {
	return func() bool { _, err := exec.LookPath(name); return err == nil }
}

func file(path string) func() bool {
	return func() bool { _, err := os.Stat(path); return err == nil }
}

// needPackages installs what is missing, where it may: for the whole, or for a few
// programs alone.
func needPackages(ctx context.Context, out io.Writer, only []string) error {
	needs := compiling
	if len(only) == 0 {
		needs = slices.Concat(compiling, running)
	}
	missing := missingPackages(needs)
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("the system lacks what these Debian packages hold: %s; install them as root: apt-get install %s", list, list)
	}
	fmt.Fprintf(out, "installing Debian packages: %s\n", list)
	for _, args := range [][]string{{"update", "-q"}, append([]string{"install", "-qy", "--no-install-recommends"}, missing...)} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if err := runQuietly(cmd); err != nil {
			return fmt.Errorf("installing %s: %w", list, err)
		}
	}
	if still := missingPackages(needs); len(still) > 0 {
		return fmt.Errorf("installed, and yet the system lacks what these packages hold: %s", strings.Join(still, " "))
	}
	return nil
}

func missingPackages(needs []need) []string {
	var out []string
	for _, n := range needs {
		if !n.have() {
			out = append(out, n.pkg)
		}
	}
	return out
}
