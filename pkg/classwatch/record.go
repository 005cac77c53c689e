package classwatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/atomicfile"
)

// record is the file in the agent's directory that says what it goes by, for people
// who look at the node without a cluster.
const record = "classes.json"

// Write records what is known in a directory.
func (k Known) Write(dir string) error {
	content, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return err
	}
	files := atomicfile.Writer{Dir: dir, Mode: 0o644}
	if err := files.Sweep(record); err != nil {
		return err
	}
	return files.Write(record, content)
}

// Read returns what an agent has last recorded in its directory; nothing where none
// has.
func Read(dir string) (Known, error) {
	known := Known{Classes: []v1alpha1.PartitionClass{}}
	path := filepath.Join(dir, record)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err != nil {
		return known, err
	}
	if err := json.Unmarshal(content, &known); err != nil {
		return known, fmt.Errorf("%s: %w: delete it; the agent writes it anew when it starts", path, err)
	}
	return known, nil
}
