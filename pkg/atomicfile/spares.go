package atomicfile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// spare marks files that were removed. No file of ours begins so.
const spare = ".spare-"

// mostSpares is how many are kept: two waves of claims of a node with sixteen GPUs. What
// one wave has left can be written once the next one is synced.
const mostSpares = 32

// Spares are files that were removed, kept to be written anew: to make a file, to sync
// what is new of it, and to remove it costs more than to write one that is there. The
// zero value is ready; one is for one directory.
type Spares struct {
	mu sync.Mutex // guards what follows
	// gone are names of files of which a power cut could bring back what they were: what
	// is written to them would stand under the name that they had.
	gone []string
	// free are those that can be written.
	free   []string
	closed bool
}

// close says that there are to be no more.
func (s *Spares) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// discard removes the spare files, and says how many there were.
func (s *Spares) discard(dir string) (int, error) {
	if s == nil {
		return 0, nil
	}
	s.mu.Lock()
	names := append(s.gone, s.free...)
	s.gone, s.free = nil, nil
	s.mu.Unlock()
	var errs []error
	for _, name := range names {
		errs = append(errs, removeIfThere(filepath.Join(dir, name)))
	}
	return len(names), errors.Join(errs...)
}

// take makes a file a spare one, where it is there and there are not enough.
func (s *Spares) take(dir, name string) bool {
	if s == nil || !s.wants() {
		return false
	}
	// A name that nobody has had: who has it on a list takes it for another file.
	kept := fmt.Sprintf("%s%s-%016x", spare, name, rand.Uint64())
	if os.Rename(filepath.Join(dir, name), filepath.Join(dir, kept)) != nil {
		return false // the caller finds out why
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = append(s.gone, kept)
	return true
}

func (s *Spares) wants() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && len(s.gone)+len(s.free) < mostSpares
}

// taken are those that were taken by now; once the directory was synced after that, they
// are free.
func (s *Spares) taken() []string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.gone)
}

func (s *Spares) release(names []string) {
	if len(names) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if i := slices.Index(s.gone, name); i >= 0 { // else somebody else's sync has seen it, too
			s.gone = slices.Delete(s.gone, i, i+1)
			s.free = append(s.free, name)
		}
	}
}

// open returns a free one, for this caller alone, and says how it is; nil where there is
// none: they may have been swept. One that cannot be had is removed, as nobody else would.
func (s *Spares) open(dir string) (*os.File, syscall.Stat_t) {
	for {
		name, ok := s.next()
		if !ok {
			return nil, syscall.Stat_t{}
		}
		path := filepath.Join(dir, name)
		f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err == nil {
			if was, ours := claim(f); ours {
				return f, was
			}
			_ = f.Close()
		}
		_ = removeIfThere(path)
	}
}

func (s *Spares) next() (name string, ok bool) {
	if s == nil {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.free) - 1
	if last < 0 {
		return "", false
	}
	name = s.free[last]
	s.free = s.free[:last]
	return name, true
}
