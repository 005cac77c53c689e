// Package debian gets packages from Debian's mirrors and unpacks them into a
// folder. Nothing is installed, and the machine's own package lists stay as they
// are.
package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrUnavailable is wrapped by errors of machines that are not Debian, or cannot
// reach its mirror.
var ErrUnavailable = errors.New("not to be had here")

// Apt is apt-get with lists of its own, below one folder.
type Apt struct {
	dir      string
	Codename string // of the release that is installed here, as "bookworm"
}

// Open asks the machine's own mirror for the lists of the installed release and
// of its backports. Dir is to be empty, or one that Open has seen before.
func Open(ctx context.Context, dir string) (*Apt, error) {
	codename, err := release("/etc/os-release")
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, fmt.Errorf("apt-get: %w: %w", err, ErrUnavailable)
	}
	a := &Apt{dir: dir, Codename: codename}
	for _, sub := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	out, err := run(ctx, "", "apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
	if err != nil {
		return nil, err
	}
	sources := sourcesFor(codename, out)
	if sources == "" {
		return nil, fmt.Errorf("apt's sources name no mirror of Debian %s (component main): %w", codename, ErrUnavailable)
	}
	if err := os.WriteFile(a.sources(), []byte(sources), 0o644); err != nil {
		return nil, err
	}
	if _, err := a.get(ctx, "", "-o", "APT::Update::Error-Mode=any", "update"); err != nil {
		return nil, fmt.Errorf("the lists of Debian's packages: %w: %w", err, ErrUnavailable)
	}
	return a, nil
}

// release reads the release's name from os-release(5).
func release(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%w: %w", err, ErrUnavailable)
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			fields[key] = strings.Trim(value, `"`)
		}
	}
	if fields["ID"] != "debian" || fields["VERSION_CODENAME"] == "" {
		return "", fmt.Errorf("this is %s, not Debian: %w", fields["PRETTY_NAME"], ErrUnavailable)
	}
	return fields["VERSION_CODENAME"], nil
}

// sourcesFor makes the lines of sources.list(5) from the lines "URI RELEASE
// COMPONENT" that the machine's own sources come to. Third parties' repositories,
// whose releases have other names, are left out.
func sourcesFor(codename, targets string) string {
	var lines []string
	for line := range strings.Lines(targets) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "main" {
			continue
		}
		suites := map[string][]string{
			codename:               {codename, codename + "-backports"},
			codename + "-security": {codename + "-security"},
		}[fields[1]]
		for _, suite := range suites {
			lines = append(lines, fmt.Sprintf("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n", fields[0], suite))
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}

func (a *Apt) sources() string { return filepath.Join(a.dir, "sources.list") }

func (a *Apt) options() []string {
	return []string{
		"-q", "-o", "Dir::Etc::SourceList=" + a.sources(), "-o", "Dir::Etc::SourceParts=/dev/null",
		"-o", "Dir::State::Lists=" + filepath.Join(a.dir, "lists"), "-o", "Dir::Cache=" + filepath.Join(a.dir, "cache"),
		"-o", "APT::Sandbox::User=", // the user that apt would become may not write here
	}
}

func (a *Apt) get(ctx context.Context, dir string, args ...string) (string, error) {
	return run(ctx, dir, "apt-get", slices.Concat(a.options(), args)...)
}

func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, args[len(args)-1], err, strings.TrimSpace(said.String()))
	}
	return string(out), nil
}
