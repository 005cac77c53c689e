// Package crash kills a process that prepares or releases a claim at every edge
// between disk, hardware and the CDI directory, and shows that a fresh one finds its
// way: nothing is lost, nothing is left, and the kubelet's next call succeeds.
package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failpoint"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// victim is set in the process that is to be killed: "prepare" or "release".
const victim = "DOVETAIL_CRASH_TEST"

func TestMain(m *testing.M) {
	if operation := os.Getenv(victim); operation != "" {
		if err := operate(context.Background(), os.Getenv(victim+"_DIR"), operation); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// operate is one agent's life: start, one call, end.
func operate(ctx context.Context, dir, operation string) error {
	w, err := claimtest.Open(dir)
	if err != nil {
		return err
	}
	m, problems, err := w.Manager(ctx)
	if err != nil || len(problems) > 0 {
		return fmt.Errorf("recovery: %v, %w", problems, err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "api", "a.json"))
	if err != nil {
		return err
	}
	var c resourceapi.ResourceClaim
	if err := json.Unmarshal(content, &c); err != nil {
		return err
	}
	if operation == "release" {
		return m.Unprepare(ctx, claimtest.Reference(&c))
	}
	_, err = m.Prepare(ctx, &c)
	return err
}

// run has another process operate. It says whether the process was killed.
func run(t *testing.T, dir, operation, failAt string) (killed bool) {
	t.Helper()
	armed := filepath.Join(dir, "failpoint")
	if err := os.WriteFile(armed, []byte(failAt), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victim+"="+operation, victim+"_DIR="+dir, failpoint.EnvFile+"="+armed)
	output, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
		return true
	}
	t.Fatalf("%s ended with %v\n%s", operation, err, output)
	return false
}

// passed lists the places that an operation passes, so that none is tested in vain.
var passed = map[string][]string{
	"prepare": {
		failpoint.JournalTemporary, failpoint.JournalWritten, failpoint.StepDone, failpoint.OutcomeWritten,
		failpoint.CDITemporary, failpoint.CDIWritten,
	},
	"release": {failpoint.CDIRemoved, failpoint.ReleaseWritten, failpoint.StepUndone, failpoint.JournalRemoved},
}

func TestEveryPlaceIsOnSomeWay(t *testing.T) {
	all := slices.Sorted(slices.Values(append(slices.Clone(passed["prepare"]), passed["release"]...)))
	if want := slices.Sorted(slices.Values(failpoint.All)); !slices.Equal(all, want) {
		t.Errorf("tested %q, there are %q", all, want)
	}
}

func TestKilledAtEveryPlace(t *testing.T) {
	for operation, places := range passed {
		for _, place := range places {
			for _, next := range []string{"prepare", "release"} {
				t.Run(operation+"/"+place+"/then-"+next, func(t *testing.T) {
					t.Parallel()
					killThenGoOn(t, operation, place, next)
				})
			}
		}
	}
}

// killThenGoOn kills an operation and lets a fresh agent recover; the kubelet then
// asks again, or the Pod has gone meanwhile and it asks for the release.
func killThenGoOn(t *testing.T, operation, place, next string) {
	w, err := claimtest.Create(t.TempDir(), "dgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Allocate("a", claimtest.Exclusive, "gpu-1b-00", "gpu-43-00"); err != nil {
		t.Fatal(err)
	}
	if operation == "release" && run(t, w.Dir, "prepare", "") {
		t.Fatal("killed without being asked to")
	}
	if !run(t, w.Dir, operation, place) {
		t.Fatalf("%s does not pass %s", operation, place)
	}
	if run(t, w.Dir, next, "") {
		t.Fatal("killed without being asked to")
	}
	var prepared []string
	if next == "prepare" {
		prepared = []string{"a"}
	}
	differences, err := w.Check(t.Context(), prepared...)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differences {
		t.Error(d)
	}
}

// TestKilledInARepair: a claim that containers run with stays prepared, whatever
// happens to a later call for it.
func TestKilledInARepair(t *testing.T) {
	for _, place := range []string{failpoint.StepDone, failpoint.CDITemporary, failpoint.CDIWritten} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			w, err := claimtest.Create(t.TempDir(), "dgx-h100")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Allocate("a", claimtest.Exclusive, "gpu-1b-00", "gpu-43-00"); err != nil {
				t.Fatal(err)
			}
			run(t, w.Dir, "prepare", "")
			for _, gpu := range []string{"0", "1"} { // the driver was loaded anew
				if err := w.Machine.SetComputeMode(gpu, machine.ComputeModeDefault); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.RemoveAll(filepath.Join(w.Dir, "cdi")); err != nil {
				t.Fatal(err)
			}
			if !run(t, w.Dir, "prepare", place) {
				t.Fatalf("the repair does not pass %s", place)
			}
			if _, problems, err := w.Manager(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("a fresh agent: %v, %v", problems, err)
			}
			differences, err := w.Check(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range differences {
				t.Error(d)
			}
		})
	}
}

// TestKilledAgainAndAgain kills the same claim's life at one place after another.
func TestKilledAgainAndAgain(t *testing.T) {
	w, err := claimtest.Create(t.TempDir(), "dgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Allocate("a", claimtest.Exclusive, "gpu-1b-00"); err != nil {
		t.Fatal(err)
	}
	for _, operation := range []string{"prepare", "release", "prepare", "release"} {
		for _, place := range passed[operation] {
			run(t, w.Dir, operation, place)
		}
		run(t, w.Dir, operation, "")
	}
	differences, err := w.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differences {
		t.Error(d)
	}
}
