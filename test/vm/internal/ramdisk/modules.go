package ramdisk

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ModuleOrder is the file with the names of the modules, one a line and each with
// its parameters, in the order in which they are to be loaded; ModuleDir has them as
// NAME.ko.
const (
	ModuleDir   = "modules"
	ModuleOrder = ModuleDir + "/order"
)

// modules are the kernel's modules by name, and those that are part of its image.
type modules struct {
	files   map[string]string
	builtIn map[string]bool
}

// AddModules puts kernel modules in, with all that they depend on: those named, each
// with its parameters ("dummy numdummies=0"), out of the kernel's own below dir,
// and then the files in extra.
func (d *Disk) AddModules(ctx context.Context, dir string, names []string, extra ...string) error {
	known, err := find(dir)
	if err != nil {
		return err
	}
	for _, file := range extra {
		name := moduleName(file)
		known.files[name] = file
		names = append(names[:len(names):len(names)], name)
	}
	var order []string
	var add func(line, wantedBy string) error
	add = func(line, wantedBy string) error {
		name, parameters, _ := strings.Cut(line, " ")
		name = strings.ReplaceAll(name, "-", "_")
		at := ModuleDir + "/" + name + ".ko"
		if _, done := d.files[at]; done || known.builtIn[name] {
			return nil
		}
		file, ok := known.files[name]
		if !ok {
			return fmt.Errorf("the kernel in %s has no module %s, which %s needs", dir, name, wantedBy)
		}
		data, err := content(ctx, file)
		if err != nil {
			return err
		}
		needed, err := dependencies(data)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		d.Add(at, 0o644, data)
		for _, n := range needed {
			if err := add(n, name); err != nil {
				return err
			}
		}
		order = append(order, strings.TrimSuffix(name+" "+parameters, " "))
		return nil
	}
	for _, name := range names {
		if err := add(name, "the guest"); err != nil {
			return err
		}
	}
	d.Add(ModuleOrder, 0o644, []byte(strings.Join(order, "\n")+"\n"))
	return nil
}

func find(dir string) (modules, error) {
	m := modules{files: map[string]string{}, builtIn: map[string]bool{}}
	list, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if err != nil {
		return m, err
	}
	for _, file := range strings.Fields(string(list)) {
		m.builtIn[moduleName(file)] = true
	}
	return m, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && strings.Contains(e.Name(), ".ko") {
			m.files[moduleName(path)] = path
		}
		return err
	})
}

// moduleName is the name that the kernel gives a module: underscores for hyphens.
func moduleName(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// content reads a module, which Debian compresses with xz.
func content(ctx context.Context, file string) ([]byte, error) {
	if !strings.HasSuffix(file, ".xz") {
		return os.ReadFile(file)
	}
	data, err := exec.CommandContext(ctx, "xz", "--decompress", "--stdout", file).Output()
	if err != nil {
		return nil, fmt.Errorf("xz --decompress %s: %w", file, err)
	}
	return data, nil
}

// dependencies reads which modules a module says it needs: "depends=a,b" among
// the strings of its section .modinfo.
func dependencies(module []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("no section .modinfo: this is no kernel module")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	var needed []string
	for field := range strings.SplitSeq(string(info), "\x00") {
		if names, ok := strings.CutPrefix(field, "depends="); ok && names != "" {
			needed = append(needed, strings.Split(names, ",")...)
		}
	}
	return needed, nil
}
