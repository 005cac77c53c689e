package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// version of the schema that this package writes. A reader of version N reads
// every older one. "version", "claim", "bootID", "holds" and "joins" keep their names and
// meaning in all versions, so that an older reader still knows what is held, for
// whom, and whether it still counts.
const version = 1

// Claim names a ResourceClaim.
type Claim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// String is "namespace/name".
func (c Claim) String() string { return c.Namespace + "/" + c.Name }

// Entry is what is on record for one claim.
type Entry struct {
	Claim Claim `json:"claim"`
	// BootID of the boot in which the steps were done. What an entry of an earlier
	// boot stands for is gone, hardware state and containers: it holds nothing.
	BootID string `json:"bootID"`
	// Holds names what nobody else may have: devices, and memory units of GPUs.
	Holds []string `json:"holds"`
	// Joins names what others may have, too, as long as they have it as the same
	// device: the value.
	Joins map[string]string `json:"joins,omitempty"`
	// Locks names what must be locked to change what the entry holds.
	Locks []string `json:"locks"`
	// Detail is the writer's own description of what was prepared.
	Detail json.RawMessage `json:"detail,omitempty"`
	// Steps in the order in which they are done, and undone backwards.
	Steps []Step `json:"steps,omitempty"`
	// Releasing says that undoing the steps has begun: what is undone of them must
	// not be done again.
	Releasing bool `json:"releasing,omitempty"`
}

// Step is one change to hardware.
type Step struct {
	// Intent is what is to be done, with all that undoing it needs.
	Intent json.RawMessage `json:"intent"`
	// Outcome is what the hardware answered. Empty until the step is done.
	Outcome json.RawMessage `json:"outcome,omitempty"`
}

// Clone returns a copy that can be changed step by step.
func (e *Entry) Clone() *Entry {
	c := *e
	c.Steps = slices.Clone(e.Steps)
	return &c
}

// Done says whether the step's outcome is on record.
func (s Step) Done() bool { return len(s.Outcome) > 0 }

// Complete says whether every step is done.
func (e *Entry) Complete() bool {
	for _, s := range e.Steps {
		if !s.Done() {
			return false
		}
	}
	return true
}

type envelope struct {
	Version int `json:"version"`
	Entry
}

// Marshal encodes an entry as it stands in the journal.
func Marshal(e *Entry) ([]byte, error) {
	content, err := json.Marshal(envelope{Version: version, Entry: *e})
	if err != nil {
		return nil, fmt.Errorf("encode record of claim %s: %w", e.Claim, err)
	}
	return content, nil
}

// Unmarshal reads a record. failure.Corrupt where it is none;
// failure.Unsupported, with claim, boot and holds filled in, where its version is newer.
func Unmarshal(content []byte) (*Entry, error) {
	var record envelope
	decoder := json.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&record); err != nil {
		return nil, failure.New(failure.Corrupt, "not a record: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, failure.New(failure.Corrupt, "data after the end of the record")
	}
	switch {
	case record.Version < 1 || record.Claim.UID == "":
		return nil, failure.New(failure.Corrupt, "not a record: it has no version or no claim")
	case record.Version > version:
		entry := &Entry{Claim: record.Claim, BootID: record.BootID, Holds: record.Holds, Joins: record.Joins}
		return entry, failure.New(failure.Unsupported,
			"the record of claim %s has version %d, this dovetail-node reads up to %d: run the version that wrote it",
			record.Claim, record.Version, version)
	}
	return &record.Entry, nil
}
