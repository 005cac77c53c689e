package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// patience is how long a test waits for what the kernel does in its own time.
const patience = 20 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// checkError wants an error of a class of pkg/failure.
func checkError(t *testing.T, err, class error) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Errorf("got %v, want: %v", err, class)
	}
}

// text reads a file of sysfs.
func text(path ...string) (string, error) {
	data, err := os.ReadFile(filepath.Join(path...))
	return strings.TrimSpace(string(data)), err
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	s, err := text(path...)
	must(t, err)
	return s
}

func write(t *testing.T, value string, path ...string) {
	t.Helper()
	must(t, writeFile(value, path...))
}

func writeFile(value string, path ...string) error {
	return os.WriteFile(filepath.Join(path...), []byte(value), 0)
}

func link(t *testing.T, name string) netlink.Link {
	t.Helper()
	l, err := netlink.LinkByName(name)
	must(t, err)
	return l
}

// setMode switches between the RDMA modes "shared" and "exclusive" (rdma-system(8)).
// The kernel refuses while there is another network namespace, and one that has ended
// takes its time to go.
func setMode(t *testing.T, mode string) {
	t.Helper()
	eventually(t, func() error { return netlink.RdmaSystemSetNetnsMode(mode) })
}

func exclusive(t *testing.T) {
	t.Helper()
	setMode(t, "exclusive")
	t.Cleanup(func() { setMode(t, "shared") })
}

// inEachMode runs a test with RDMA devices that all network namespaces have, and with those
// that belong to one.
func inEachMode(t *testing.T, test func(t *testing.T, mode string)) {
	for _, mode := range []string{"shared", "exclusive"} {
		t.Run(mode, func(t *testing.T) {
			if mode == "exclusive" {
				exclusive(t)
			}
			test(t, mode)
		})
	}
}

// gids are a port's that are there, as "index=gid".
func gids(root, device string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(root, "sys/class/infiniband", device, "ports/1/gids/*"))
	var found []string
	for _, file := range files {
		gid, err := text(file)
		if err == nil && gid != "0000:0000:0000:0000:0000:0000:0000:0000" {
			found = append(found, filepath.Base(file)+"="+gid)
		}
	}
	return found, err
}

// ipv4GID is the GID of an IPv4 address, as sysfs has it.
func ipv4GID(a, b, c, d byte) string {
	return fmt.Sprintf("0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x", a, b, c, d)
}

func hasGID(root, device, gid string) error {
	all, err := gids(root, device)
	for _, g := range all {
		if strings.HasSuffix(g, "="+gid) {
			return nil
		}
	}
	return errors.Join(err, fmt.Errorf("%s has no GID %s, but %v", device, gid, all))
}

// open opens a device node and closes it.
func open(node string) error {
	fd, err := unix.Open(node, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func absent(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is still there (%v)", path, err)
	}
	return nil
}
