package mps_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/mps"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/mps/server"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

// sharing answers what it is told to.
type sharing struct {
	hardware.Sharing
	err    error
	asked  []any
	events chan hardware.MPSEvent
}

func (s *sharing) StartMPS(_ context.Context, devices []string) (hardware.MPSDaemon, error) {
	s.asked = append(s.asked, devices)
	return hardware.MPSDaemon{Protocol: 3, Pipe: "/pipe", Shm: "/shm"}, s.err
}

func (s *sharing) StopMPS(_ context.Context, devices []string) error {
	s.asked = append(s.asked, devices)
	return s.err
}

func (s *sharing) MakeNamespace(_ context.Context, devices []string, name string, limits hardware.MPSLimits) (string, error) {
	s.asked = append(s.asked, devices, name, limits)
	return "/pipe/" + name, s.err
}

func (s *sharing) RemoveNamespace(_ context.Context, devices []string, name string) error {
	s.asked = append(s.asked, devices, name)
	return s.err
}

func (s *sharing) TimeSlice(_ context.Context, gpu string) (machine.TimeSlice, error) {
	s.asked = append(s.asked, gpu)
	return machine.TimeSliceLong, s.err
}

func (s *sharing) SetTimeSlice(_ context.Context, gpu string, to machine.TimeSlice) error {
	s.asked = append(s.asked, gpu, to)
	return s.err
}

func (s *sharing) WatchMPS(ctx context.Context, notify func(hardware.MPSEvent)) error {
	for {
		select {
		case e := <-s.events:
			notify(e)
		case <-ctx.Done():
			return s.err
		}
	}
}

// serve offers s at a socket until stop.
func serve(t testing.TB, s hardware.Sharing, socket string) (stop func()) {
	t.Helper()
	listener, err := server.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.New(s).Serve(ctx, listener) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func connect(t testing.TB, socket string) *mps.Client {
	t.Helper()
	c, err := mps.New(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

var devices = []string{"GPU-b", "GPU-a"}

func TestCalls(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	s := &sharing{}
	defer serve(t, s, socket)()
	c := connect(t, socket)

	limits := hardware.MPSLimits{ThreadPercentage: 25, Memory: map[string]uint64{"GPU-a": 10 << 30}}
	daemon, err := c.StartMPS(t.Context(), devices)
	if want := (hardware.MPSDaemon{Protocol: 3, Pipe: "/pipe", Shm: "/shm"}); err != nil || daemon != want {
		t.Errorf("%+v, %v, want %+v", daemon, err, want)
	}
	if pipe, err := c.MakeNamespace(t.Context(), devices, "one", limits); err != nil || pipe != "/pipe/one" {
		t.Errorf("%s, %v", pipe, err)
	}
	if slice, err := c.TimeSlice(t.Context(), "GPU-a"); err != nil || slice != machine.TimeSliceLong {
		t.Errorf("%s, %v", slice, err)
	}
	for _, err := range []error{
		c.RemoveNamespace(t.Context(), devices, "one"), c.SetTimeSlice(t.Context(), "GPU-a", machine.TimeSliceShort), c.StopMPS(t.Context(), devices),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []any{devices, devices, "one", limits, "GPU-a", devices, "one", "GPU-a", machine.TimeSliceShort, devices}
	if !reflect.DeepEqual(s.asked, want) {
		t.Errorf("what arrived is\n%v, want\n%v", s.asked, want)
	}
}

func TestErrors(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	s := &sharing{}
	defer serve(t, s, socket)()
	c := connect(t, socket)
	for _, class := range []error{failure.Absent, failure.Unreachable, failure.Busy, failure.Conflict, failure.Unsupported, failure.Invalid, failure.Corrupt, nil} {
		s.err = failure.New(class, "GPU-a: no")
		if class == nil {
			s.err = errors.New("GPU-a: no")
		}
		_, started := c.StartMPS(t.Context(), devices)
		_, made := c.MakeNamespace(t.Context(), devices, "one", hardware.MPSLimits{})
		_, read := c.TimeSlice(t.Context(), "GPU-a")
		for i, err := range []error{
			started, made, read, c.StopMPS(t.Context(), devices),
			c.RemoveNamespace(t.Context(), devices, "one"), c.SetTimeSlice(t.Context(), "GPU-a", machine.TimeSliceLong),
		} {
			if err == nil || err.Error() != "GPU-a: no" || failure.ClassOf(err) != class {
				t.Errorf("call %d: %v of class %v, want %v", i, err, failure.ClassOf(err), class)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.StopMPS(ctx, devices); !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose time is over: %v", err)
	}
}

func TestNobodyThere(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	c := connect(t, socket)
	err := patiencetest.Hurried(t, func(ctx context.Context) error { return c.StopMPS(ctx, devices) })
	if !errors.Is(err, failure.Unreachable) || !strings.Contains(err.Error(), socket) {
		t.Errorf("%v, want failure.Unreachable with the socket's path", err)
	}
}

// TestServerComesBack: a call made while nobody serves waits a little.
func TestServerComesBack(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	c := connect(t, socket)
	for range 3 {
		done := make(chan error, 1)
		go func() { done <- c.StopMPS(t.Context(), devices) }()
		stop := serve(t, &sharing{}, socket)
		if err := <-done; err != nil {
			t.Error(err)
		}
		stop()
	}
}

func TestWatch(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	c := connect(t, socket)
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan hardware.MPSEvent)
	ended := make(chan error, 1)
	go func() { ended <- c.WatchMPS(ctx, func(e hardware.MPSEvent) { seen <- e }) }()
	for _, message := range []string{"first", "after the server was away"} {
		s := &sharing{events: make(chan hardware.MPSEvent)}
		stop := serve(t, s, socket)
		want := hardware.MPSEvent{Devices: devices, Kind: hardware.MPSRestarted, Message: message}
		s.events <- want
		if got := <-seen; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		stop()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Watch ended with %v", err)
	}
}

// TestRootOnly connects as somebody else, by running this test once more.
func TestRootOnly(t *testing.T) {
	if socket := os.Getenv("TEST_SOCKET"); socket != "" {
		c := connect(t, socket)
		err := patiencetest.Hurried(t, func(ctx context.Context) error { return c.StopMPS(ctx, devices) })
		if !errors.Is(err, failure.Unreachable) {
			t.Errorf("user %d was served: %v", os.Getuid(), err)
		}
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	dir, err := os.MkdirTemp("", "") // all directories above must be passable
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	s := &sharing{}
	defer serve(t, s, socket)()
	if info, err := os.Stat(socket); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(socket, 0o666)); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe") // where it was built, nobody else may look
	program := filepath.Join(dir, "test")
	if err := errors.Join(err, os.WriteFile(program, self, 0o755)); err != nil {
		t.Fatal(err)
	}
	other := exec.Command(program, "-test.run=^TestRootOnly$", "-test.v")
	other.Dir, other.Env = "/", []string{"TEST_SOCKET=" + socket}
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := other.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
	if conn, err := net.Dial("unix", socket); err != nil {
		t.Error(err)
	} else {
		_ = conn.Close()
	}
	if len(s.asked) > 0 {
		t.Errorf("a call of somebody else arrived: %v", s.asked)
	}
}

func BenchmarkCall(b *testing.B) {
	socket := filepath.Join(b.TempDir(), "s")
	defer serve(b, &silent{}, socket)()
	c := connect(b, socket)
	for b.Loop() {
		if _, err := c.StartMPS(b.Context(), devices); err != nil {
			b.Fatal(err)
		}
	}
}

// silent remembers nothing.
type silent struct{ hardware.Sharing }

func (silent) StartMPS(context.Context, []string) (hardware.MPSDaemon, error) {
	return hardware.MPSDaemon{Protocol: 2, Pipe: "/run/dovetail/mps/0123456789ab/pipe", Shm: "/run/dovetail/mps/0123456789ab/shm"}, nil
}
