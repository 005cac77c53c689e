// Package crash kills a process that prepares or releases a claim at every edge
// between disk, hardware and the CDI directory, and shows that a fresh one finds its
// way: nothing is lost, nothing is left, and the kubelet's next call succeeds. Then
// it lets claims come and go at random, with all the trouble that there is.
package crash

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failpoint"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// Calls of the kubelet.
const (
	prepare = "prepare"
	release = "release"
	// patientRelease waits for who has the hardware open.
	patientRelease = "patient-release"
)

// victim is set in the process that is to be killed: call, claim and world.
const victim = "DOVETAIL_CRASH_TEST"

func TestMain(m *testing.M) {
	if call := os.Getenv(victim); call != "" {
		if err := operate(context.Background(), os.Getenv(victim+"_WORLD"), call, os.Getenv(victim+"_CLAIM")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	klog.LogToStderr(false) // of recoveries by the hundred
	klog.SetOutput(io.Discard)
	if _, set := os.LookupEnv("TMPDIR"); !set {
		// Who is killed loses nothing that was written, so there is no need to wait for
		// a disk a thousand times.
		if err := unix.Access("/dev/shm", unix.W_OK); err == nil {
			os.Setenv("TMPDIR", "/dev/shm")
		}
	}
	os.Exit(m.Run())
}

// operate is one agent's life: start, one call, end.
func operate(ctx context.Context, dir, call, name string) error {
	w, err := claimtest.Open(dir)
	if err != nil {
		return err
	}
	if call == patientRelease {
		w.BusyPatience = time.Minute
	}
	m, _, err := w.Manager(ctx) // what it could not mend, whoever comes next tells
	if err != nil {
		return err
	}
	if call == turns {
		return takeTurns(ctx, w, m)
	}
	c, err := w.Claim(name)
	if err != nil {
		return err
	}
	if call == prepare {
		_, err := m.Prepare(ctx, c)
		return err
	}
	return m.Unprepare(ctx, claimtest.Reference(c))
}

// kill has another process operate, which is to be killed where armed says, as
// pkg/failpoint reads it. It says whether it was; else err is what came of the call.
func kill(t *testing.T, w *claimtest.World, call, name, armed string) (killed bool, err error) {
	t.Helper()
	file := filepath.Join(w.Dir, "failpoint")
	if err := os.WriteFile(file, []byte(armed), 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victim+"="+call, victim+"_WORLD="+w.Dir, victim+"_CLAIM="+name, failpoint.EnvFile+"="+file)
	output, err := cmd.CombinedOutput()
	if err == nil {
		return false, nil
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case ok && status.Signal() == syscall.SIGKILL:
		return true, nil
	case ok && status.ExitStatus() == 1:
		return false, fmt.Errorf("%s", output)
	}
	t.Fatalf("%s of %s ended with %v\n%s", call, name, err, output)
	return false, nil
}

// letGo ends holds. A process that another test is starting can have them for as long
// as it has not begun.
func letGo(holds ...*simulator.Hold) {
	for _, h := range holds {
		h.Release()
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
}
