// Package journal is the durable record of what was done to hardware for which
// claim: one file a claim, on disk before the hardware is touched. It knows no
// hardware and keeps no state of its own between calls, so that two agents can
// use one directory while one replaces the other.
package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/dovetail-dra/dovetail/pkg/atomicfile"
	"github.com/dovetail-dra/dovetail/pkg/failpoint"
	"github.com/dovetail-dra/dovetail/pkg/failure"
)

const (
	suffix   = ".json"
	setAside = "set-aside"
	settled  = ".settled"
)

// Journal is a directory of records. The caller serialises changes of one
// claim's record; everything else may run side by side.
type Journal struct {
	files atomicfile.Writer

	mu     sync.Mutex
	parsed map[string]parsed // by file name; mu guards it
}

// parsed remembers what a file held. What stands under a claim's name is replaced,
// never written over, so the same inode, size and time mean the same content.
type parsed struct {
	info  fs.FileInfo
	entry *Entry
	err   error
}

// Open opens the directory, which is made where it is missing.
func Open(dir string) (*Journal, error) {
	j := &Journal{
		files: atomicfile.Writer{
			Dir: dir, Durable: true, Mode: 0o600, Spares: &atomicfile.Spares{},
			BeforeRename: func() { failpoint.Pass(failpoint.JournalTemporary) },
		},
		parsed: map[string]parsed{},
	}
	return j, j.makeDir()
}

// makeDir makes the directory, also where somebody has removed it meanwhile.
func (j *Journal) makeDir() error {
	if err := os.MkdirAll(filepath.Join(j.files.Dir, setAside), 0o700); err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	return nil
}

// Put writes a claim's record; when it returns nil the record is durable.
func (j *Journal) Put(e *Entry) error {
	content, err := Marshal(e)
	if err != nil {
		return err
	}
	name := e.Claim.UID + suffix
	content = padded(content)
	err = j.files.Write(name, content)
	if errors.Is(err, fs.ErrNotExist) {
		if err = j.makeDir(); err == nil {
			err = j.files.Write(name, content)
		}
	}
	if err != nil {
		j.forget(name)
		return fmt.Errorf("record claim %s: %w", e.Claim, err)
	}
	j.remember(name, e.Clone())
	return nil
}

// padded fills a record up with blanks, so that most have one size: to sync what is
// written over a file of that size is to write its content, and nothing about the file.
func padded(content []byte) []byte {
	const step = 1024 // bytes; a record of one GPU has some 500
	return append(append(content, bytes.Repeat([]byte(" "), step-1-len(content)%step)...), '\n')
}

// Delete removes a claim's record; one that is not there is no error. It need not
// survive a power cut: a record that comes back is of an earlier boot.
func (j *Journal) Delete(uid string) error {
	defer j.forget(uid + suffix)
	if err := j.files.Remove(uid + suffix); err != nil {
		return fmt.Errorf("remove record of claim %s: %w", uid, err)
	}
	return nil
}

// Get returns a claim's record: failure.Absent where there is none,
// failure.Corrupt and failure.Unsupported as for List.
func (j *Journal) Get(uid string) (*Entry, error) {
	return j.read(uid + suffix)
}

// Record is one file of the journal as List finds it.
type Record struct {
	UID string
	// Entry is nil where Err is failure.Corrupt; claim, boot and holds alone are
	// filled in where Err is failure.Unsupported (a newer version).
	Entry *Entry
	Err   error
}

// List returns all records in the order of their claims' UIDs. Entries are
// shared: the caller must not change them.
func (j *Journal) List() ([]Record, error) {
	files, err := os.ReadDir(j.files.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list journal: %w", err)
	}
	var records []Record
	seen := make(map[string]bool, len(files))
	for _, f := range files {
		uid, ok := strings.CutSuffix(f.Name(), suffix)
		if !ok || strings.HasPrefix(f.Name(), ".") {
			continue
		}
		entry, err := j.read(f.Name())
		if errors.Is(err, failure.Absent) {
			continue // removed meanwhile
		}
		seen[f.Name()] = true
		records = append(records, Record{UID: uid, Entry: entry, Err: err})
	}
	j.keep(seen)
	return records, nil
}

// SetAside moves a record that cannot be read out of the way, to be looked at by
// people, and returns where it went.
func (j *Journal) SetAside(uid string) (string, error) {
	to := filepath.Join(j.files.Dir, setAside, uid+suffix)
	if err := os.Rename(filepath.Join(j.files.Dir, uid+suffix), to); err != nil {
		return "", fmt.Errorf("set record of claim %s aside: %w", uid, err)
	}
	return to, nil
}

// Settle notes that what was set aside for a claim no longer matters: its record is
// back, or the claim has ended. The file stays, for people.
func (j *Journal) Settle(uid string) error {
	aside := filepath.Join(j.files.Dir, setAside, uid+suffix)
	if err := os.Rename(aside, aside+settled); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("settle the damaged record of claim %s: %w", uid, err)
	}
	return nil
}

// Lost says whether any record was set aside and not settled.
func (j *Journal) Lost() (bool, error) {
	files, err := os.ReadDir(filepath.Join(j.files.Dir, setAside))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("list damaged records: %w", err)
	}
	return slices.ContainsFunc(files, func(f fs.DirEntry) bool { return strings.HasSuffix(f.Name(), suffix) }), nil
}

// Close removes all that is no record. The journal can be used on.
func (j *Journal) Close() error {
	if err := j.files.Close(); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// Sweep removes what interrupted writes have left, and files that were kept to be written
// anew. Writes that another agent has under way are not disturbed.
func (j *Journal) Sweep() error { return j.files.Sweep("") }

func (j *Journal) read(name string) (*Entry, error) {
	path := filepath.Join(j.files.Dir, name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failure.New(failure.Absent, "no record of claim %s", strings.TrimSuffix(name, suffix))
	}
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	known, ok := j.parsed[name]
	j.mu.Unlock()
	if ok && atomicfile.Same(known.info, info) {
		return known.entry, known.err
	}
	content, info, err := j.files.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failure.New(failure.Absent, "no record of claim %s", strings.TrimSuffix(name, suffix))
	}
	if err != nil {
		return nil, err
	}
	entry, err := Unmarshal(content)
	if entry != nil && entry.Claim.UID+suffix != name {
		err = failure.New(failure.Corrupt, "it is the record of claim %s (UID %s)", entry.Claim, entry.Claim.UID)
		entry = nil
	}
	j.mu.Lock()
	j.parsed[name] = parsed{info: info, entry: entry, err: err}
	j.mu.Unlock()
	return entry, err
}

// remember keeps what was written: nobody else changes the record meanwhile.
func (j *Journal) remember(name string, e *Entry) {
	info, err := os.Stat(filepath.Join(j.files.Dir, name))
	if err != nil {
		j.forget(name)
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.parsed[name] = parsed{info: info, entry: e}
}

// forget drops what is remembered of one file.
func (j *Journal) forget(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.parsed, name)
}

// keep drops what is remembered of all but the files in names.
func (j *Journal) keep(names map[string]bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.DeleteFunc(j.parsed, func(name string, _ parsed) bool { return !names[name] })
}
