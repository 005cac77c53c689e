package claimtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// Check compares hardware, journal and CDI directory, which must say the same, and
// nothing may be left over of work that is done. Each difference is one line.
// prepared names the claims that should be there; a journal that is right has just
// these.
func (w *World) Check(ctx context.Context, prepared ...string) ([]string, error) {
	var differences []string
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }

	records, err := journal.Open(w.path("claims"))
	if err != nil {
		return nil, err
	}
	list, err := records.List()
	if err != nil {
		return nil, err
	}
	store, err := cdi.NewStore(w.path("cdi"), w.path("nccl"), w.Edits)
	if err != nil {
		return nil, err
	}
	described, err := store.Claims()
	if err != nil {
		return nil, err
	}

	holder := map[string]string{}
	exclusive := map[string]bool{}
	var recorded []string
	for _, r := range list {
		if r.Err != nil {
			differ("record of %s: %v", r.UID, r.Err)
			continue
		}
		if r.Entry.Claim.Namespace == "" {
			continue // something owed
		}
		recorded = append(recorded, r.Entry.Claim.Name)
		if !slices.Contains(described, r.UID) {
			differ("claim %s is on record but has no CDI specification", r.Entry.Claim)
		}
		if !r.Entry.Complete() {
			differ("claim %s is on record with steps that are not done", r.Entry.Claim)
		}
		for _, name := range r.Entry.Holds {
			if other := holder[name]; other != "" {
				differ("device %s is held for %s and for %s", name, other, r.Entry.Claim)
			}
			holder[name] = r.Entry.Claim.String()
		}
		steps, err := stepsOf(r.Entry)
		if err != nil {
			return nil, err
		}
		for _, s := range steps {
			if s.Kind == plan.SetComputeMode {
				exclusive[s.GPU] = true
			}
		}
	}
	topologies, err := filepath.Glob(w.path("nccl", "*.xml"))
	if err != nil {
		return nil, err
	}
	for _, path := range topologies {
		if uid := strings.TrimSuffix(filepath.Base(path), ".xml"); !slices.Contains(described, uid) {
			differ("claim %s has a topology file but no CDI specification", uid)
		}
	}
	for _, uid := range described {
		if !slices.ContainsFunc(list, func(r journal.Record) bool { return r.UID == uid }) {
			differ("claim %s has a CDI specification but is not on record", uid)
		}
	}
	slices.Sort(recorded)
	if want := slices.Sorted(slices.Values(prepared)); !slices.Equal(recorded, want) {
		differ("on record: %q, want %q", recorded, want)
	}
	now, err := w.Describe(ctx)
	if err != nil {
		return nil, err
	}
	for _, gpu := range now.GPUs {
		want := machine.ComputeModeDefault
		if exclusive[gpu.UUID] {
			want = machine.ComputeModeExclusiveProcess
		}
		if gpu.ComputeMode != want {
			differ("%s has compute mode %s, want %s", gpu.Name(), gpu.ComputeMode, want)
		}
	}
	shares, err := w.shares(list)
	if err != nil {
		return nil, err
	}
	differences = append(differences, shares...)
	partitions, err := w.partitions(now, list)
	if err != nil {
		return nil, err
	}
	differences = append(differences, partitions...)
	nics, err := w.nics(ctx, list)
	if err != nil {
		return nil, err
	}
	differences = append(differences, nics...)
	leftovers, err := w.leftovers()
	return append(differences, leftovers...), err
}

// leftovers are temporary files. Spare ones stay, to be written anew.
func (w *World) leftovers() ([]string, error) {
	var found []string
	for _, dir := range []string{"claims", "cdi", "nccl"} {
		err := filepath.WalkDir(w.path(dir), func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasPrefix(d.Name(), ".tmp-") {
				found = append(found, "left over: "+filepath.Join(dir, d.Name()))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
