// Package sharedlib finds the loader and the libraries that programs are linked
// to, on a Debian machine. Standard library only.
package sharedlib

import (
	"debug/elf"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Of finds what the programs need, by base name: their loaders, their libraries,
// what those need in turn, and where a program is not static also the libraries
// in always.
func Of(always []string, programs ...string) (map[string]string, error) {
	paths := map[string]string{}
	var queue []string
	for _, program := range programs {
		loader, needed, err := linked(program)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", program, err)
		}
		if loader != "" { // not a static binary
			paths[path.Base(loader)] = loader
			queue = slices.Concat(queue, needed, always)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if paths[name] != "" {
			continue
		}
		var err error
		if paths[name], err = find(name); err != nil {
			return nil, err
		}
		_, more, err := linked(paths[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", paths[name], err)
		}
		queue = append(queue, more...)
	}
	return paths, nil
}

// linked reads from an ELF file which loader it names and which libraries.
func linked(name string) (loader string, needed []string, err error) {
	f, err := elf.Open(name)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b, err := io.ReadAll(p.Open())
			if err != nil {
				return "", nil, err
			}
			loader = strings.TrimRight(string(b), "\x00")
		}
	}
	needed, err = f.ImportedLibraries()
	return loader, needed, err
}

// find looks for a library where Debian has them.
func find(name string) (string, error) {
	for _, pattern := range []string{"/lib/*-linux-gnu", "/usr/lib/*-linux-gnu", "/lib64", "/lib"} {
		if hits, _ := filepath.Glob(filepath.Join(pattern, name)); len(hits) > 0 {
			return hits[0], nil
		}
	}
	return "", fmt.Errorf("library %s is not where Debian has its libraries", name)
}
