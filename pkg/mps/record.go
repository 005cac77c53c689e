package mps

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/dovetail-dra/dovetail/pkg/atomicfile"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/mps/process"
)

const (
	recordFile    = "set.json"
	recordVersion = 1
)

// record is what must be known of a set after the end of whoever started its control
// daemon. It need not survive the node: neither does the daemon.
type record struct {
	Version  int      `json:"version"`
	BootID   string   `json:"bootID"`
	Devices  []string `json:"devices"`
	Protocol int      `json:"protocol"`
	// Daemon is zero while it starts.
	Daemon process.ID `json:"daemon"`
	// Server is protocol 3's; zero where it is not known.
	Server     process.ID                    `json:"server,omitzero"`
	Stopping   bool                          `json:"stopping,omitempty"`
	Namespaces map[string]hardware.MPSLimits `json:"namespaces,omitempty"`
}

func (r *record) write(dir string) error {
	r.Version = recordVersion
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.Writer{Dir: dir, Mode: 0o600}.Write(recordFile, data)
}

func readRecord(dir string) (*record, error) {
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil || r.Version != recordVersion {
		return nil, failure.New(failure.Corrupt, "%s: version %d, %v", filepath.Join(dir, recordFile), r.Version, err)
	}
	return &r, nil
}
