// Command mkimage makes the agent's container image without a container engine:
// a docker-archive that "ctr images import" and "docker load" take. In it are
// the agent, the controller, dovetail-mps, the hooks that the agent puts on the host, and of
// Debian's packages only the loader and the libraries that our programs, and NVML
// in them, are linked to. The same input gives the same bytes. Standard library only.
//
//	go run ./hack/mkimage -ref NAME:TAG -out out/dovetail.tar
//	go run ./hack/mkimage -root DIR    # the files only
//	go run ./hack/mkimage -static bin/podcheck -ref NAME:TAG -out out/podcheck.tar
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/dovetail-dra/dovetail/hack/toolbox"
)

func main() {
	var o options
	flag.StringVar(&o.agent, "agent", "bin/dovetail-node", "the agent's binary")
	flag.StringVar(&o.controller, "controller", "bin/dovetail-controller", "the controller's binary, beside the agent's")
	flag.StringVar(&o.mps, "mps", "bin/dovetail-mps", "the binary of dovetail-mps, beside the agent's")
	flag.StringVar(&o.hook, "hook", "bin/dovetail-hook", "the binary of dovetail-hook, which the agent puts on the host")
	flag.StringVar(&o.static, "static", "", "make an image of this static program alone, instead of the agent's")
	flag.StringVar(&o.ref, "ref", "registry.local/dovetail:dev", "name and tag of the image")
	flag.StringVar(&o.version, "version", "dev", "version, for the image's labels")
	flag.StringVar(&o.out, "out", "", "write the image to this file")
	flag.StringVar(&o.root, "root", "", "write the image's files below this folder instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
}

type options struct{ agent, controller, mps, hook, static, ref, version, out, root string }

// program is what the image runs.
func (o options) program() string { return filepath.Base(cmp.Or(o.static, o.agent)) }

func run(ctx context.Context, o options) error {
	if (o.out == "") == (o.root == "") {
		return errors.New("give one of -out FILE and -root DIR")
	}
	files, err := content(ctx, o)
	if err != nil {
		return err
	}
	if o.root != "" {
		return writeTree(o.root, files)
	}
	size, err := writeArchive(o, files)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s, %.1f MB\n", o.out, o.ref, float64(size)/1e6)
	for _, f := range files {
		if len(f.data) > 1<<20 {
			fmt.Printf("  %-40s %5.1f MB\n", "/"+f.name, float64(len(f.data))/1e6)
		}
	}
	return nil
}

// content is what is in the image.
func content(ctx context.Context, o options) ([]file, error) {
	programs := []string{o.agent, o.controller, o.mps, o.hook}
	if o.static != "" {
		programs = []string{o.static}
	}
	files := []file{
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/:/usr/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\n")},
		{name: "tmp", mode: os.ModeDir | os.ModeSticky | 0o777},
	}
	for _, program := range programs {
		binary, err := os.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("the image's binary: %w (make build makes it)", err)
		}
		files = append(files, file{name: "usr/bin/" + filepath.Base(program), mode: 0o755, data: binary})
	}
	if o.static != "" {
		return complete(files), nil
	}
	hookPath, err := toolbox.Path(ctx, "nvidia-cdi-hook", os.Stderr)
	if err != nil {
		return nil, err
	}
	hook, err := os.ReadFile(hookPath)
	if err != nil {
		return nil, err
	}
	files = append(files, file{name: "usr/bin/nvidia-cdi-hook", mode: 0o755, data: hook})
	libraries, err := libraries(ctx, programs...)
	if err != nil {
		return nil, err
	}
	return complete(append(files, libraries...)), nil
}

func writeTree(root string, files []file) error {
	for _, f := range files {
		path := filepath.Join(root, f.name)
		if f.mode.IsDir() {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return err
			}
			if err := os.Chmod(path, f.mode); err != nil {
				return err
			}
			continue
		}
		if err := os.WriteFile(path, f.data, f.mode); err != nil {
			return err
		}
	}
	return nil
}
