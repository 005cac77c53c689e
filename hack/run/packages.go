package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// apart are the packages whose tests are other groups' or need a cluster.
var apart = []string{"test/archtest", "test/chart", "test/e2e", "test/vm/guest"}

// pure are the packages that reach neither Kubernetes nor NVML: with the race
// detector they and their tests still build in seconds.
func pure(ctx context.Context) ([]string, error) { return unitPackages(ctx, true) }

// impure are all others.
func impure(ctx context.Context) ([]string, error) { return unitPackages(ctx, false) }

func unitPackages(ctx context.Context, wantPure bool) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-e", "-json=ImportPath,Deps,TestGoFiles,XTestGoFiles,TestImports,XTestImports", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list ./...: %w\n%s", err, stderr.String())
	}
	type pkg struct {
		ImportPath                string
		Deps                      []string
		TestGoFiles, XTestGoFiles []string
		TestImports, XTestImports []string
	}
	all := map[string]pkg{}
	var order []string
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list ./...: %w", err)
		}
		all[p.ImportPath] = p
		order = append(order, p.ImportPath)
	}
	heavy := func(imports []string) bool {
		for _, i := range imports {
			if strings.HasPrefix(i, "k8s.io/") || strings.Contains(i, "go-nvml") {
				return true
			}
		}
		return false
	}
	var chosen []string
	for _, path := range order {
		p := all[path]
		if isApart(path) || len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		direct := append(append([]string{}, p.TestImports...), p.XTestImports...)
		isHeavy := heavy(p.Deps) || heavy(direct)
		for _, i := range direct {
			isHeavy = isHeavy || heavy(all[i].Deps)
		}
		if isHeavy != wantPure {
			chosen = append(chosen, path)
		}
	}
	return chosen, nil
}

func isApart(path string) bool {
	for _, a := range apart {
		if s := short(path); s == a || strings.HasPrefix(s, a+"/") {
			return true
		}
	}
	return false
}
