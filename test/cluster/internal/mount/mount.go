// Package mount does the few things with mounts that the cluster needs.
package mount

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Isolate makes the calling process's mount namespace, which must be a new one,
// independent of the one that it was copied from, and shared within.
func Isolate() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("making mounts shared: %w", err)
	}
	return nil
}

// Proc mounts /proc anew, for the PID namespace of the caller.
func Proc() error {
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	return nil
}

// Bind lays source over target.
func Bind(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s over %s: %w", source, target, err)
	}
	return nil
}

// Shared makes what is mounted in dir later visible to containers that have dir.
func Shared(dir string) error {
	return unix.Mount("", dir, "", unix.MS_SHARED, "")
}

// Point is one mount: its number, which is unique while it lasts, and its place.
type Point struct {
	ID   int
	Path string
}

// List returns the mounts of the caller's namespace, in the order of mounting.
func List() ([]Point, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Point
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if p, ok := parse(lines.Text()); ok {
			out = append(out, p)
		}
	}
	return out, lines.Err()
}

// parse reads a line of mountinfo: "36 35 98:0 /sub /mount/point options…".
func parse(line string) (Point, bool) {
	f := strings.Fields(line)
	if len(f) < 5 {
		return Point{}, false
	}
	id, err := strconv.Atoi(f[0])
	return Point{id, unescape(f[4])}, err == nil
}

// unescape undoes the kernel's \040 for blanks and the like.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// UnmountNewer unmounts all that was mounted since base was listed.
func UnmountNewer(base []Point) error {
	known := map[int]bool{}
	for _, p := range base {
		known[p.ID] = true
	}
	return unmount(func(p Point) bool { return !known[p.ID] })
}

// UnmountBelow unmounts all that is mounted in dir or below.
func UnmountBelow(dir string) error {
	return unmount(func(p Point) bool { return p.Path == dir || strings.HasPrefix(p.Path, dir+"/") })
}

func unmount(which func(Point) bool) error {
	points, err := List()
	if err != nil {
		return err
	}
	var errs error
	for i := len(points) - 1; i >= 0; i-- { // what lies on top first
		p := points[i]
		if !which(p) {
			continue
		}
		// EINVAL: it went along with one that it was propagated from.
		err := unix.Unmount(p.Path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			errs = errors.Join(errs, fmt.Errorf("unmounting %s: %w", p.Path, err))
		}
	}
	return errs
}
