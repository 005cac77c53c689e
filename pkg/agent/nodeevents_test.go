package agent

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/dovetail-dra/dovetail/pkg/class"
)

func TestClassUnofferedIsAnEvent(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	e := &nodeEvents{recorder: recorder, node: &corev1.Node{}}
	e.classUnoffered(&class.Unoffered{Class: "small", Why: "there is no room"})
	if got := <-recorder.Events; !strings.Contains(got, "Warning ClassNotOffered PartitionClass small: there is no room") {
		t.Errorf("event %q", got)
	}
}
