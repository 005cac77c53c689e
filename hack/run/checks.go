package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// files are the tree's own: tracked, or new and not ignored.
func files(ctx context.Context, patterns ...string) ([]string, error) {
	args := append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", "--"}, patterns...)
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w (is this a git checkout?)", err)
	}
	var list []string
	for f := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if info, err := os.Lstat(f); err == nil && info.Mode().IsRegular() {
			list = append(list, f)
		}
	}
	return list, nil
}

func formatted(ctx context.Context, log io.Writer) error {
	list, err := files(ctx, "*.go")
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "gofmt", append([]string{"-s", "-l"}, list...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("gofmt: %w\n%s", err, out)
	}
	if len(out) > 0 {
		_, _ = log.Write(out)
		return errors.New("these files are not formatted; make fmt does it")
	}
	return nil
}

// localPath finds the homes of people, and of this machine its home and the
// folder of the checkout. It is put together from pieces so that it does not
// find itself.
func localPath(here, home string) *regexp.Regexp {
	places := []string{`/(` + strings.Join([]string{"home", "Users"}, "|") + `)/[a-z]\w*`}
	for _, own := range []string{here, home} {
		if own = strings.TrimSuffix(own, "/"); own != "" {
			places = append(places, regexp.QuoteMeta(own)+"/")
		}
	}
	return regexp.MustCompile(`(^|[^\w./-])(` + strings.Join(places, "|") + `)`)
}

func noLocalPaths(ctx context.Context, log io.Writer) error {
	list, err := files(ctx)
	if err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	local := localPath(here, os.Getenv("HOME"))
	found := 0
	for _, f := range list {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if bytes.IndexByte(b, 0) >= 0 {
			continue
		}
		for i, line := range bytes.Split(b, []byte("\n")) {
			if local.Match(line) {
				found++
				fmt.Fprintf(log, "%s:%d: %s\n", f, i+1, bytes.TrimSpace(line))
			}
		}
	}
	if found > 0 {
		return fmt.Errorf("%d lines name a path of somebody's own machine; use a relative path or a variable", found)
	}
	return nil
}

// modules checks that what is downloaded is what go.sum says, and that every
// module of the tree resolves without a change.
func modules(ctx context.Context, log io.Writer) error {
	list, err := files(ctx, "go.mod", "*/go.mod")
	if err != nil {
		return err
	}
	for _, f := range list {
		dir := strings.TrimSuffix(strings.TrimSuffix(f, "go.mod"), "/")
		if strings.Contains(dir, "testdata") {
			continue
		}
		cmd := exec.CommandContext(ctx, "go", "list", "-mod=readonly", "-deps", "./...")
		if strings.HasPrefix(dir, "hack/tools/") {
			cmd = exec.CommandContext(ctx, "go", "list", "-mod=readonly", "tool")
		}
		cmd.Dir = dir
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s does not resolve as it is: %w\n%s", f, err, stderr.String())
		}
		if strings.HasPrefix(dir, "hack/tools/") {
			continue // what a tool's own tests need is not worth the download
		}
		tidy := exec.CommandContext(ctx, "go", "mod", "tidy", "-diff")
		tidy.Dir = dir
		if out, err := tidy.CombinedOutput(); err != nil {
			return fmt.Errorf("%s is not tidy; go mod tidy makes it so: %w\n%s", f, err, out)
		}
	}
	out, err := exec.CommandContext(ctx, "go", "mod", "verify").CombinedOutput()
	if err != nil {
		return fmt.Errorf("go mod verify: %w\n%s", err, out)
	}
	_, _ = log.Write(out)
	return nil
}

// generated runs go generate and compares, so that it can be run on a tree with
// uncommitted work, too.
func generated(ctx context.Context, log io.Writer) error {
	before, err := sums(ctx)
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "go", "generate", "./...").CombinedOutput(); err != nil {
		return fmt.Errorf("go generate ./...: %w\n%s", err, out)
	}
	after, err := sums(ctx)
	if err != nil {
		return err
	}
	var changed []string
	for f, sum := range after {
		if before[f] != sum {
			changed = append(changed, f)
		}
	}
	for f := range before {
		if _, ok := after[f]; !ok {
			changed = append(changed, f)
		}
	}
	slices.Sort(changed)
	for _, f := range changed {
		fmt.Fprintln(log, f)
	}
	if len(changed) > 0 {
		return errors.New("go generate changed these files; commit them as they are now")
	}
	return nil
}

func sums(ctx context.Context) (map[string][sha256.Size]byte, error) {
	list, err := files(ctx)
	if err != nil {
		return nil, err
	}
	all := make(map[string][sha256.Size]byte, len(list))
	for _, f := range list {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		all[f] = sha256.Sum256(b)
	}
	return all, nil
}
