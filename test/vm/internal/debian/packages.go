package debian

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Closure is the packages, whether they are installed here or not, and all that
// they depend on and that is not, each as "name=version". Suite is where the
// packages themselves come from.
func (a *Apt) Closure(ctx context.Context, suite string, packages ...string) ([]string, error) {
	args := []string{"install", "--simulate", "--reinstall", "--no-install-recommends", "-t", suite}
	out, err := a.get(ctx, "", append(args, packages...)...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrUnavailable)
	}
	found := installed(out)
	for _, name := range packages {
		if !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, name+"=") }) {
			return nil, fmt.Errorf("apt-get would not install %s from %s: %w", name, suite, ErrUnavailable)
		}
	}
	return found, nil
}

// inst is a line of a simulated installation: "Inst NAME [OLD] (VERSION ORIGIN…".
var inst = regexp.MustCompile(`(?m)^Inst (\S+) (?:\[\S+\] )?\((\S+) `)

func installed(simulation string) []string {
	var found []string
	for _, m := range inst.FindAllStringSubmatch(simulation, -1) {
		found = append(found, m[1]+"="+m[2])
	}
	return found
}

// Depends is the first package that pkg depends on and whose name begins with
// prefix. So a package that only names the newest of a series is resolved.
func (a *Apt) Depends(ctx context.Context, pkg, prefix string) (string, error) {
	out, err := run(ctx, "", "apt-cache", append(a.options(), "depends", pkg)...)
	if err != nil {
		return "", fmt.Errorf("%w: %w", err, ErrUnavailable)
	}
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: "); ok && strings.HasPrefix(name, prefix) {
			return name, nil
		}
	}
	return "", fmt.Errorf("%s depends on no %s…: %w", pkg, prefix, ErrUnavailable)
}

// Download puts the packages, each "name" or "name=version", into dir, and
// returns their files.
func (a *Apt) Download(ctx context.Context, dir string, packages ...string) ([]string, error) {
	if _, err := a.get(ctx, dir, append([]string{"download"}, packages...)...); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrUnavailable)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err == nil && len(files) != len(packages) {
		err = fmt.Errorf("%d packages were asked for, %d came", len(packages), len(files))
	}
	return files, err
}

// Unpack lays a package's files out below dir.
func Unpack(ctx context.Context, deb, dir string) error {
	_, err := run(ctx, "", "dpkg-deb", "--extract", deb, dir)
	return err
}
