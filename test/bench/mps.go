package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/dovetail-dra/dovetail/pkg/hardware/mps"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// mpsd is a dovetail-mps that runs the machine's programs.
type mpsd struct {
	*program
	dir string // its run directory
}

func (b *bench) startMPS(m *simulator.Machine) (*mpsd, error) {
	// Not in memory, which may be /dev/shm: there control daemons see their clients' one.
	d := &mpsd{dir: filepath.Join(b.disk, "mps")}
	var err error
	d.program, err = start(filepath.Join(b.disk, "mps.log"), b.mps, "run",
		"--run-dir", d.dir, "--driver-root", m.Root(), "--proc-root", filepath.Join(m.Root(), "proc"))
	return d, err
}

// socket is the flag with which an agent finds it.
func (d *mpsd) socket() []string { return []string{"--mps-socket", mps.Socket(d.dir)} }

// serve is the process that serves; the other one keeps it alive.
func (d *mpsd) serve() (int, error) { return childOf(d.pid()) }

// stop also ends what no container's end takes along: control daemons of a benchmark
// that has failed.
func (d *mpsd) stop() error {
	err := d.program.stop()
	files, _ := filepath.Glob(filepath.Join(d.dir, "*/pipe/nvidia-cuda-mps-control.pid"))
	for _, file := range files {
		content, _ := os.ReadFile(file)
		if pid, unread := strconv.Atoi(strings.TrimSpace(string(content))); unread == nil {
			err = errors.Join(err, syscall.Kill(pid, syscall.SIGTERM))
		}
	}
	return err
}
