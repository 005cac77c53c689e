package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Read returns a file's content, and how the file was while that was in its place.
func (w Writer) Read(name string) ([]byte, fs.FileInfo, error) {
	path := filepath.Join(w.Dir, name)
	for {
		content, was, err := read(path)
		if err != nil {
			return nil, nil, err
		}
		now, err := os.Stat(path)
		if err != nil {
			return nil, nil, err
		}
		if Same(was, now) {
			return content, was, nil
		}
	}
}

func read(path string) (content []byte, was fs.FileInfo, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if was, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	content, err = io.ReadAll(f)
	return content, was, err
}

// Same says whether two looks at one name saw the same file with the same content: what
// stands under a name is never written over.
func Same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
