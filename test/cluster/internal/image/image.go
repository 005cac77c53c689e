// Package image makes the two images that a cluster cannot do without, as
// docker archives, from what the system has.
package image

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Busybox is where Debian's busybox-static puts its program.
const Busybox = "/bin/busybox"

//go:embed pause/pause.c
var pauseSource []byte

// Image is one image that is built.
type Image struct {
	Name  string // registry.local/NAME:1
	Build func(ctx context.Context, tar string) error
}

// All lists them.
var All = []Image{{"pause", buildPause}, {"busybox", buildBusybox}}

// applets are the names by which the busybox image calls its program.
var applets = strings.Fields(`awk cat chmod cp cut date df dirname dmesg echo env expr false find free grep head
	hostname id ifconfig ip kill ln ls md5sum mkdir mkfifo mknod mktemp mount mv nc netstat nslookup od ping ps pwd
	readlink rm rmdir route sed seq sh sha256sum sleep sort stat sync tail tar tee test timeout top touch tr
	true umount uname uniq vi wc wget which xargs`)

// Fingerprint changes when the images would.
func Fingerprint() string {
	return fmt.Sprintf("%x %v v1", sha256.Sum256(pauseSource), applets)
}

// Static says whether a file is a program that needs no loader.
func Static(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}

func buildPause(ctx context.Context, tar string) error {
	dir, err := os.MkdirTemp("", "dovetail-pause-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source, program := filepath.Join(dir, "pause.c"), filepath.Join(dir, "pause")
	if err := os.WriteFile(source, pauseSource, 0o644); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "gcc", "-Os", "-static", "-s", "-o", program, source).CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return Write(tar, "registry.local/pause:1", []string{"/pause"}, []File{{Path: "pause", Source: program}})
}

func buildBusybox(_ context.Context, tar string) error {
	if !Static(Busybox) {
		return fmt.Errorf("%s is missing or needs a loader; install Debian's busybox-static", Busybox)
	}
	var files []File
	for _, d := range []string{"bin", "dev", "etc", "proc", "root", "sys", "tmp", "usr", "var"} {
		files = append(files, File{Path: d})
	}
	files = append(files, File{Path: "bin/busybox", Source: Busybox}, File{Path: "usr/bin", Link: "../bin"})
	for _, a := range applets {
		files = append(files, File{Path: "bin/" + a, Link: "busybox"})
	}
	return Write(tar, "registry.local/busybox:1", []string{"/bin/sh"}, files)
}
