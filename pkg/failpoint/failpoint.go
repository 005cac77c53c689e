// Package failpoint lets crash tests stop the very binary that ships at a chosen
// place. Nothing happens unless the environment names a file.
//
// Each place is passed on the way of normal work:
//
//	failpoint.Pass(failpoint.JournalWritten)
//
// The file named by DOVETAIL_FAILPOINT_FILE holds the name of one place, and
// perhaps a number: "step-done 3" is the third time that it is passed. Who passes it
// then removes the file and kills its own process with SIGKILL: once, so that the
// restarted process goes on.
package failpoint

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// EnvFile names the file that arms a place.
const EnvFile = "DOVETAIL_FAILPOINT_FILE"

// The places: the edges between what is on disk, in hardware and in the CDI
// directory.
const (
	JournalTemporary = "journal-temporary" // the new record is written, not yet in its place
	JournalWritten   = "journal-written"   // the record with the intent is durable
	StepDone         = "step-done"         // hardware changed, outcome not yet recorded
	OutcomeWritten   = "outcome-written"   // the outcome is durable
	CDITemporary     = "cdi-temporary"     // the CDI spec is written, not yet in its place
	CDIWritten       = "cdi-written"       // everything is done, nobody was told
	CDIRemoved       = "cdi-removed"       // unprepare: the CDI spec is gone, hardware is not undone
	ReleaseWritten   = "release-written"   // unprepare: it is noted that undoing begins
	StepUndone       = "step-undone"       // unprepare: a change of hardware is undone, the record stays
	JournalRemoved   = "journal-removed"   // unprepare: all is gone, nobody was told
)

// All lists every place, for tests that walk through them.
var All = []string{
	JournalTemporary, JournalWritten, StepDone, OutcomeWritten, CDITemporary,
	CDIWritten, CDIRemoved, ReleaseWritten, StepUndone, JournalRemoved,
}

var file = os.Getenv(EnvFile)

// Pass kills the process where the place is armed.
func Pass(place string) {
	if file == "" {
		return
	}
	armed, err := os.ReadFile(file)
	name, number, _ := strings.Cut(strings.TrimSpace(string(armed)), " ")
	if err != nil || name != place {
		return
	}
	if n, _ := strconv.Atoi(number); n > 1 {
		_ = os.WriteFile(file, []byte(place+" "+strconv.Itoa(n-1)), 0o600)
		return
	}
	if os.Remove(file) != nil {
		return
	}
	if os.Getpid() == 1 {
		// The kernel ignores what a container's first process sends to itself.
		// This ends it as abruptly: nothing is run or flushed.
		syscall.Exit(128 + int(syscall.SIGKILL))
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // SIGKILL is on its way: do nothing more
}
