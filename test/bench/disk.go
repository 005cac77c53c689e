package main

import (
	"os"
	"path/filepath"
	"time"
)

// recordSize is about what a journal record takes.
const recordSize = 512

// durableWrite times what a durable change of a file takes by itself: write, fsync,
// rename, fsync of the directory.
func durableWrite(dir, name string) (time.Duration, error) {
	begin := time.Now()
	f, err := os.CreateTemp(dir, name+"-")
	if err != nil {
		return 0, err
	}
	if _, err := f.Write(make([]byte, recordSize)); err != nil {
		return 0, join(err, f.Close())
	}
	if err := join(f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return 0, err
	}
	d, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	err = join(d.Sync(), d.Close())
	return time.Since(begin), err
}
