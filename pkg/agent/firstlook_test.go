package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// While the hardware does not answer at the start, log and readiness say so; the agent can
// be ended, and goes on when it answers.
func TestFirstLook(t *testing.T) {
	for name, ends := range map[string]bool{"it answers": false, "the agent is ended": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := make(chan struct{})
				a := &Agent{looked: make(chan struct{}), registered: make(chan struct{}), observer: newObserver(func(context.Context) (machine.Machine, error) {
					<-answer
					return machine.Machine{}, failure.New(failure.Absent, "no driver")
				})}
				a.observer.changed = func(_, _ *machine.Machine) {}
				logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
				ctx, end := context.WithCancel(klog.NewContext(t.Context(), logger))
				defer end()
				done := make(chan error, 1)
				go func() { done <- a.firstLook(ctx) }()
				<-time.After(2*firstLookSaid + time.Second)
				if err := a.ready(); !errors.Is(err, errFirstLook) {
					t.Errorf("ready: %v", err)
				}
				buffer := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
				if strings.Count(buffer, "Still waiting for the hardware's first answer") != 2 {
					t.Errorf("log: %s", buffer)
				}
				if ends {
					end()
					if err := <-done; !errors.Is(err, context.Canceled) {
						t.Errorf("error %v", err)
					}
					close(answer)
					return
				}
				close(answer)
				if err := <-done; err != nil {
					t.Errorf("error %v", err)
				}
				if err := a.ready(); err == nil || errors.Is(err, errFirstLook) {
					t.Errorf("ready, when it has answered: %v", err)
				}
			})
		})
	}
}
