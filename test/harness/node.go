package harness

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// Folders on a node, as the chart's values have them.
const (
	PluginDir  = "/var/lib/kubelet/plugins/" + Driver
	ClaimsDir  = PluginDir + "/claims"
	metaDir    = PluginDir + "/dra-device-metadata"
	CDIDir     = "/run/cdi"
	cdiClaim   = CDIDir + "/" + Driver + "-claim-"
	cdiMeta    = CDIDir + "/" + Driver + "_metadata_"
	jsonSuffix = ".json"
)

// Snapshot is what lies on a node at one moment.
type Snapshot struct {
	// Files of the driver, by their path; the directories of MPS, too, with a slash
	// behind them.
	Files map[string][]byte
	// Processes of MPS.
	Processes []Process
	// Interfaces and Routes of the node's own network namespace.
	Interfaces []Interface
	Routes     []Route
	// Machine is nil where the node has none.
	Machine *simulator.State
}

// Snapshot reads all that the driver keeps on a node, and its hardware's state, in
// one go.
func (c *Cluster) Snapshot(ctx context.Context, node string) (*Snapshot, error) {
	// tar complains of sockets, and ends with 1 where a file has changed while it was read:
	// files here are replaced, so what it has of one is whole.
	out, err := c.Shell(ctx, node, listProcesses+"echo ==\n"+listNetwork+`echo ==; cd /; for d in `+strings.Join([]string{PluginDir, CDIDir, MPSDir, stateFile}, " ")+`; do
		test -e $d && echo .$d; done | tar -cf - --warning=none --ignore-failed-read -T - || test $? -eq 1`)
	if err != nil {
		return nil, err
	}
	parts := strings.SplitN(out, "==\n", 4)
	if len(parts) < 4 {
		return nil, fmt.Errorf("snapshot of %s: %d parts, want 4", node, len(parts))
	}
	s := &Snapshot{Files: map[string][]byte{}}
	if s.Processes, err = parseProcesses(parts[0]); err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", node, err)
	}
	if err := s.parseNetwork(parts[1], parts[2]); err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", node, err)
	}
	reader := tar.NewReader(strings.NewReader(parts[3]))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, fmt.Errorf("snapshot of %s: %w", node, err)
		}
		name := path.Clean("/" + header.Name)
		content, err := io.ReadAll(reader)
		if err != nil {
			return nil, fmt.Errorf("snapshot of %s: %w", node, err)
		}
		switch {
		case name == stateFile:
			s.Machine = &simulator.State{}
			if err := json.Unmarshal(content, s.Machine); err != nil {
				return nil, fmt.Errorf("state of the simulated machine on %s: %w", node, err)
			}
		case header.Typeflag == tar.TypeReg:
			s.Files[name] = content
		case header.Typeflag == tar.TypeDir && strings.HasPrefix(name, MPSDir+"/"):
			s.Files[name+"/"] = nil
		}
	}
}

// Claims are the UIDs of the claims on record.
func (s *Snapshot) Claims() map[string]bool { return s.between(ClaimsDir+"/", jsonSuffix) }

// Specs are the UIDs of the claims that the container runtime knows.
func (s *Snapshot) Specs() map[string]bool { return s.between(cdiClaim, jsonSuffix) }

// between lists what stands between prefix and suffix in the files' names.
func (s *Snapshot) between(prefix, suffix string) map[string]bool {
	found := map[string]bool{}
	for name := range s.Files {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if rest, ok = strings.CutSuffix(rest, suffix); ok && !strings.Contains(rest, "/") && !strings.HasPrefix(rest, ".") {
			found[rest] = true
		}
	}
	return found
}
