package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/bench/stats"
)

// Sizes are those of a journal record, and about that of a device's metadata.
const (
	recordSize   = 1024
	metadataSize = 2000
)

// fileWork is what a prepare does to the disk, done bare: a durable write of the
// record, over a file that was there, and the metadata's two folders and one file.
type fileWork struct{ durable, metadata stats.Sample }

// both are the sums.
func (w fileWork) both() stats.Sample {
	sums := make(stats.Sample, len(w.durable))
	for i := range sums {
		sums[i] = w.durable[i] + w.metadata[i]
	}
	return sums
}

// doFileWork does the work of some prepares at once.
func doFileWork(dir string, count int) (fileWork, error) {
	w := fileWork{durable: make(stats.Sample, count), metadata: make(stats.Sample, count)}
	var group errgroup.Group
	for i := range count {
		group.Go(func() (err error) {
			name := fmt.Sprintf("bare-%d", i)
			begin := time.Now()
			if err := durableWrite(dir, name); err != nil {
				return err
			}
			w.durable[i] = time.Since(begin)
			begin = time.Now()
			below := filepath.Join(dir, name+"-metadata", request)
			if err := join(os.MkdirAll(below, 0o755), os.WriteFile(filepath.Join(below, "metadata.json"), make([]byte, metadataSize), 0o644)); err != nil {
				return err
			}
			w.metadata[i] = time.Since(begin)
			return nil
		})
	}
	err := group.Wait()
	for i := range count {
		name := filepath.Join(dir, fmt.Sprintf("bare-%d", i))
		err = join(err, os.Rename(name, name+"-spare"), os.RemoveAll(name+"-metadata"))
	}
	return w, err
}

// durableWrite makes a file that survives a power cut, of a spare one where there is
// one: write, fdatasync, rename, fsync of the directory.
func durableWrite(dir, name string) error {
	spare := filepath.Join(dir, name+"-spare")
	f, err := os.OpenFile(spare, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, recordSize))
	if err = join(err, unix.Fdatasync(int(f.Fd())), f.Close(), os.Rename(spare, filepath.Join(dir, name))); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return join(d.Sync(), d.Close())
}
