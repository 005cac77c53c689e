package mps

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// trusted is how long a reading of a GPU's time slice is given again.
const trusted = time.Minute

// timeSlices remembers what GPUs have, since asking is a fork.
type timeSlices struct {
	// run runs nvidia-smi.
	run func(ctx context.Context, gpu string, args ...string) (string, error)

	mutex sync.Mutex // guards gpus; held for moments only
	gpus  map[string]*timeSlice
}

// timeSlice is one GPU's.
type timeSlice struct {
	lock  chan struct{} // has one element, which is whose turn it is; guards what follows
	value machine.TimeSlice
	read  time.Time
}

// TimeSlice implements hardware.Sharing. It is what the GPU had within the last minute:
// an administrator, or a reload of the driver, can change it.
func (m *Manager) TimeSlice(ctx context.Context, gpu string) (machine.TimeSlice, error) {
	t, unlock, err := m.slices.of(ctx, gpu)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := m.slices.refresh(ctx, gpu, t); err != nil {
		return "", err
	}
	return t.value, nil
}

// SetTimeSlice implements hardware.Sharing. Where the GPU had it within the last minute,
// no program runs.
func (m *Manager) SetTimeSlice(ctx context.Context, gpu string, to machine.TimeSlice) error {
	number := slices.Index(machine.TimeSlices, to)
	if number < 0 {
		return failure.New(failure.Invalid, "time slice %q of GPU %s: use one of %v", to, gpu, machine.TimeSlices)
	}
	t, unlock, err := m.slices.of(ctx, gpu)
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.slices.refresh(ctx, gpu, t); err != nil {
		return err
	}
	if t.value == to {
		return nil
	}
	t.value = ""
	if _, err := m.slices.run(ctx, gpu, "--set-timeslice="+strconv.Itoa(number)); err != nil {
		return err
	}
	if err := m.slices.ask(ctx, gpu, t); err != nil {
		return err
	}
	if t.value != to {
		return fmt.Errorf("time slice of GPU %s: it was set to %s, and is %s", gpu, to, t.value)
	}
	return nil
}

// of is a GPU's, locked.
func (a *timeSlices) of(ctx context.Context, gpu string) (*timeSlice, func(), error) {
	switch {
	case strings.HasPrefix(gpu, "MIG-"):
		return nil, nil, failure.New(failure.Unsupported, "time slice of %s: a MIG device has none of its own: use its GPU", gpu)
	case !strings.HasPrefix(gpu, "GPU-"):
		return nil, nil, failure.New(failure.Invalid, "time slice of %q: it is no UUID of a GPU", gpu)
	}
	a.mutex.Lock()
	if a.gpus == nil {
		a.gpus = map[string]*timeSlice{}
	}
	t, ok := a.gpus[gpu]
	if !ok {
		t = &timeSlice{lock: make(chan struct{}, 1)}
		a.gpus[gpu] = t
	}
	a.mutex.Unlock()
	select {
	case t.lock <- struct{}{}:
		return t, func() { <-t.lock }, nil
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

// refresh reads it from the GPU where what is known is not to be trusted.
func (a *timeSlices) refresh(ctx context.Context, gpu string, t *timeSlice) error {
	if t.value != "" && time.Since(t.read) <= trusted {
		return nil
	}
	return a.ask(ctx, gpu, t)
}

// ask reads it from the GPU.
func (a *timeSlices) ask(ctx context.Context, gpu string, t *timeSlice) error {
	t.value = ""
	output, err := a.run(ctx, gpu, "--list")
	if err != nil {
		return err
	}
	value, err := parseTimeSlice(output)
	if err != nil {
		return fmt.Errorf("time slice of GPU %s: %w", gpu, err)
	}
	t.value, t.read = value, time.Now()
	return nil
}

// parseTimeSlice finds the one time slice in the table of one GPU, whose form differs
// between drivers.
func parseTimeSlice(table string) (machine.TimeSlice, error) {
	var found []machine.TimeSlice
	for word := range strings.FieldsFuncSeq(table, func(r rune) bool { return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') }) {
		if i := slices.IndexFunc(machine.TimeSlices, func(t machine.TimeSlice) bool { return strings.EqualFold(string(t), word) }); i >= 0 {
			found = append(found, machine.TimeSlices[i])
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("nvidia-smi compute-policy --list does not say one of %v, but%s", machine.TimeSlices, words([]byte(table)))
	}
	return found[0], nil
}

// smi runs nvidia-smi compute-policy on a GPU, and says what its failure means
// (nvidia-smi(1), "RETURN VALUE").
func (m *Manager) smi(ctx context.Context, gpu string, args ...string) (string, error) {
	output, err := m.run(ctx, nil, "", smiProgram, append([]string{"compute-policy", "-i", gpu}, args...)...)
	var status *exec.ExitError
	if err == nil || !errors.As(err, &status) {
		return output, err
	}
	if status.ExitCode() == 3 { // not available on this device
		err = failure.New(failure.Unsupported, "%w", err)
	}
	return "", m.absent(ctx, gpu, err)
}
