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
	files      atomicfile.Writer
	topologies atomicfile.Writer
	edits      Edits
}

// NewStore uses the runtime's directory, which is made where it is missing, and one for
// files that containers are given, which must have the same name on the host.
func NewStore(dir, topologies string, edits Edits) (*Store, error) {
	for _, d := range []string{dir, topologies} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, fmt.Errorf("open CDI directory: %w", err)
		}
	}
	return &Store{
		files: atomicfile.Writer{
			Dir: dir, Mode: 0o644,
			BeforeRename: func() { failpoint.Pass(failpoint.CDITemporary) },
		},
		topologies: atomicfile.Writer{Dir: topologies, Mode: 0o644},
		edits:      edits,
	}, nil
}

// Write makes the claim's specification what it should be. One that is so
// already is not written again.
func (s *Store) Write(c Claim) error {
	topology, err := s.writeTopology(c)
	if err != nil {
		return err
	}
	spec, err := build(s.bound(c), s.edits, topology)
	if err != nil {
		return err
	}
	content, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode CDI specification: %w", err)
	}
	return write(s.files, fileName(c.UID), content, "CDI specification")
}

// write makes a file what it should be.
func write(files atomicfile.Writer, name string, content []byte, what string) error {
	if there, err := os.ReadFile(filepath.Join(files.Dir, name)); err == nil && bytes.Equal(there, content) {
		return nil
	}
	// The directory may be wiped at boot, also under a running agent.
	if err := os.MkdirAll(files.Dir, 0o755); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	if err := files.Write(name, content); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}

// writeTopology writes the claim's file for NCCL before the specification names it, and
// returns how containers are given it; nil where there is none.
func (s *Store) writeTopology(c Claim) (*specs.Mount, error) {
	if c.Topology == nil {
		return nil, nil
	}
	name := topologyName(c.UID)
	if err := write(s.topologies, name, c.Topology, "NCCL's topology file"); err != nil {
		return nil, err
	}
	return &specs.Mount{
		HostPath: filepath.Join(s.topologies.Dir, name), ContainerPath: "/run/dovetail/nccl/" + name,
		Options: []string{"ro", "bind", "nosuid", "nodev", "noexec"},
	}, nil
}

// Remove removes the claim's specification; one that is not there is no error.
func (s *Store) Remove(uid string) error {
	if err := s.files.Remove(fileName(uid)); err != nil {
		return fmt.Errorf("remove CDI specification: %w", err)
	}
	if err := s.topologies.Remove(topologyName(uid)); err != nil {
		return fmt.Errorf("remove NCCL's topology file: %w", err)
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
func (s *Store) Sweep() error {
	return errors.Join(s.files.Sweep(driverPrefix), s.topologies.Sweep(""))
}

func topologyName(uid string) string { return uid + ".xml" }

func fileName(uid string) string { return filePrefix + uid + fileSuffix }

func (s *Store) path(uid string) string { return filepath.Join(s.files.Dir, fileName(uid)) }
