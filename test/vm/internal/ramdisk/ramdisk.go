// Package ramdisk writes the guest's root file system: an initramfs, that is a
// compressed cpio archive in the format "newc" (the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst).
package ramdisk

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
)

// Disk is a file system in the making. Paths are those in the guest, without the
// leading slash.
type Disk struct {
	files map[string]file
}

type file struct {
	mode         uint32
	major, minor uint32
	data         []byte
}

// Types of files, as in stat(2).
const (
	folder    = 0o040000
	regular   = 0o100000
	character = 0o020000
)

// New has what a process needs before anything is mounted: a console.
func New() *Disk {
	d := &Disk{files: map[string]file{}}
	for _, dir := range []string{"dev", "proc", "run", "sys", "tmp"} {
		d.files[dir] = file{mode: folder | 0o755}
	}
	d.files["dev/console"] = file{mode: character | 0o600, major: 5, minor: 1}
	return d
}

// Add puts a file in, and the folders above it.
func (d *Disk) Add(name string, mode os.FileMode, data []byte) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		d.files[dir] = file{mode: folder | 0o755}
	}
	d.files[name] = file{mode: regular | uint32(mode.Perm()), data: data}
}

// AddProgram puts an executable file of this machine in.
func (d *Disk) AddProgram(name, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	d.Add(name, 0o755, data)
	return nil
}

// Write makes the archive.
func (d *Disk) Write(to string) error {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	// The guest's processor is emulated and the archive is read once: speed counts.
	zip, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(zip)
	if err := d.archive(buffered); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return f.Close()
}

func (d *Disk) archive(w io.Writer) error {
	names := make([]string, 0, len(d.files))
	for name := range d.files {
		names = append(names, name)
	}
	slices.Sort(names) // a folder before what is in it
	for i, name := range names {
		if err := entry(w, i+1, name, d.files[name]); err != nil {
			return err
		}
	}
	return entry(w, 0, "TRAILER!!!", file{})
}

// entry is a header of hexadecimal numbers, the name and the content, each of the
// two padded to four bytes.
func entry(w io.Writer, inode int, name string, f file) error {
	const owner, links, modified, check = 0, 1, 0, 0
	header := fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		inode, f.mode, owner, owner, links, modified, len(f.data), 0, 0, f.major, f.minor, len(name)+1, check)
	for _, part := range [][]byte{padded(header + name + "\x00"), padded(string(f.data))} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func padded(s string) []byte {
	return append([]byte(s), make([]byte, (4-len(s)%4)%4)...)
}
