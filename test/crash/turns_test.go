package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failpoint"
	"github.com/dovetail-dra/dovetail/pkg/journal"
)

// turns is a life of more than one call: two claims take turns, so that records are
// written over files that were another's.
const turns = "turns"

// turn is what the kubelet knows of the claims.
type turn struct {
	// Told are those that it was told are prepared.
	Told []string
	// Asked is the one for which it asks now.
	Asked string
}

const turnFile = "turn.json"

// takeTurns prepares and releases claims a and b. What the kubelet knows is on disk
// before each call.
func takeTurns(ctx context.Context, w *claimtest.World, m *claim.Manager) error {
	var now turn
	for _, next := range []struct{ call, name string }{
		{prepare, "a"}, {release, "a"}, {prepare, "b"}, {release, "b"}, {prepare, "a"}, {prepare, "b"}, {release, "a"}, {prepare, "a"},
	} {
		now.Asked = next.name
		now.Told = slices.DeleteFunc(now.Told, func(name string) bool { return name == next.name })
		known, err := json.Marshal(now)
		if err == nil {
			err = os.WriteFile(filepath.Join(w.Dir, turnFile), known, 0o600)
		}
		c, unread := w.Claim(next.name)
		if err := errors.Join(err, unread); err != nil {
			return err
		}
		if next.call == release {
			if err := m.Unprepare(ctx, claimtest.Reference(c)); err != nil {
				return err
			}
			continue
		}
		if _, err := m.Prepare(ctx, c); err != nil {
			return err
		}
		now.Told = append(now.Told, next.name)
	}
	return nil
}

// TestKilledWhileClaimsTakeTurns kills the agent at all places of that life. What the
// kubelet was told of is on record then, as it was and under its own name, and nothing
// else but, perhaps, what it was asking for.
func TestKilledWhileClaimsTakeTurns(t *testing.T) {
	before, err := claimtest.Create(filepath.Join(t.TempDir(), "world"), "dgx-h100")
	must(t, err)
	for name, devices := range map[string][]string{"a": {"gpu-1b-00", "gpu-43-00"}, "b": {"gpu-52-00"}} {
		_, err := before.Allocate(name, claimtest.Exclusive, devices...)
		must(t, err)
	}
	written := false
	for _, place := range failpoint.All {
		for n := 1; ; n++ {
			w := copied(t, before)
			armed := fmt.Sprintf("%s %d", place, n)
			killed, err := kill(t, w, turns, "a", armed)
			must(t, err)
			if !killed {
				break
			}
			written = written || place == failpoint.JournalTemporary && writesOver(t, w, "a", "b")
			for _, d := range afterTurns(t, w) {
				t.Errorf("killed at %s: %s", armed, d)
			}
		}
	}
	if !written {
		t.Error("no record was being written over a file that was another's")
	}
}

// writesOver says whether a file that was one claim's record has another's by now.
func writesOver(t *testing.T, w *claimtest.World, was, now string) bool {
	t.Helper()
	spares, err := filepath.Glob(filepath.Join(w.Dir, "claims", ".spare-uid-"+was+".json-*"))
	must(t, err)
	return slices.ContainsFunc(spares, func(path string) bool {
		content, err := os.ReadFile(path)
		must(t, err)
		entry, err := journal.Unmarshal(content)
		return err == nil && entry.Claim.Name == now
	})
}

func afterTurns(t *testing.T, w *claimtest.World) []string {
	t.Helper()
	var was turn
	content, err := os.ReadFile(filepath.Join(w.Dir, turnFile))
	must(t, err)
	must(t, json.Unmarshal(content, &was))
	m, problems, err := w.Manager(t.Context())
	if err != nil || len(problems) > 0 || len(w.Damage) > 0 {
		t.Fatalf("recovery: %v, %v, %v", problems, w.Damage, err)
	}
	want := slices.Clone(was.Told)
	records, err := m.Records()
	must(t, err)
	for _, r := range records {
		if r.Entry.Claim.Name == was.Asked {
			want = append(want, was.Asked)
		}
	}
	found := differences(t, w, want...)
	for _, name := range []string{"a", "b"} {
		_, err := m.Prepare(t.Context(), read(t, w, name))
		must(t, err)
	}
	return append(found, differences(t, w, "a", "b")...)
}
