package cdi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/atomicfile"
	"github.com/dovetail-dra/dovetail/pkg/failpoint"
	"github.com/dovetail-dra/dovetail/pkg/failure"
)

const (
	driverPrefix = "dovetail.dev"
	filePrefix   = driverPrefix + "-claim-"
	fileSuffix   = ".json"
)

// Store is the runtime's directory of CDI specifications. Ours are derived from
// the journal and written again when they are gone, so they are not synced to
// disk; the directory usually lies in memory anyway.
type Store struct {
	files atomicfile.Writer
	edits Edits
}

// NewStore uses the directory, which is made where it is missing.
func NewStore(dir string, edits Edits) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open CDI directory: %w", err)
	}
	return &Store{
		files: atomicfile.Writer{
			Dir: dir, Mode: 0o644,
			BeforeRename: func() { failpoint.Pass(failpoint.CDITemporary) },
		},
		edits: edits,
	}, nil
}

// Write makes the claim's specification what it should be. One that is so
// already is not written again.
func (s *Store) Write(c Claim) error {
	spec, err := build(c, s.edits)
	if err != nil {
		return err
	}
	content, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode CDI specification: %w", err)
	}
	if there, err := os.ReadFile(s.path(c.UID)); err == nil && bytes.Equal(there, content) {
		return nil
	}
	// The directory is wiped at boot, also under a running agent.
	if err := os.MkdirAll(s.files.Dir, 0o755); err != nil {
		return fmt.Errorf("write CDI specification: %w", err)
	}
	if err := s.files.Write(fileName(c.UID), content); err != nil {
		return fmt.Errorf("write CDI specification: %w", err)
	}
	return nil
}

// Remove removes the claim's specification; one that is not there is no error.
func (s *Store) Remove(uid string) error {
	if err := s.files.Remove(fileName(uid)); err != nil {
		return fmt.Errorf("remove CDI specification: %w", err)
	}
	return nil
}

// Record returns the record that Write kept with a claim's specification:
// failure.Absent where there is no specification, failure.Corrupt where it
// cannot be read.
func (s *Store) Record(uid string) ([]byte, error) {
	content, err := os.ReadFile(s.path(uid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failure.New(failure.Absent, "no CDI specification of claim %s", uid)
	}
	if err != nil {
		return nil, err
	}
	var spec specs.Spec
	if err := json.Unmarshal(content, &spec); err != nil {
		return nil, failure.New(failure.Corrupt, "CDI specification of claim %s: %w", uid, err)
	}
	record, ok := spec.Annotations[annotationRecord]
	if !ok {
		return nil, failure.New(failure.Corrupt, "CDI specification of claim %s: annotation %s is missing", uid, annotationRecord)
	}
	return []byte(record), nil
}

// Has says whether the claim has a specification.
func (s *Store) Has(uid string) bool {
	_, err := os.Stat(s.path(uid))
	return err == nil
}

// Claims lists the UIDs of the claims that have a specification.
func (s *Store) Claims() ([]string, error) {
	paths, err := filepath.Glob(s.path("*"))
	if err != nil {
		return nil, err
	}
	uids := make([]string, 0, len(paths))
	for _, path := range paths {
		base := filepath.Base(path)
		uids = append(uids, base[len(filePrefix):len(base)-len(fileSuffix)])
	}
	return uids, nil
}

// Sweep removes what interrupted writes of this driver have left, also those of
// the plugin helper.
func (s *Store) Sweep() error { return s.files.Sweep(driverPrefix) }

func fileName(uid string) string { return filePrefix + uid + fileSuffix }

func (s *Store) path(uid string) string { return filepath.Join(s.files.Dir, fileName(uid)) }
