package harness

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

func TestClassOf(t *testing.T) {
	requests := []resourceapi.DeviceRequest{
		{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "small"}},
		{Name: "any", FirstAvailable: []resourceapi.DeviceSubRequest{
			{Name: "best", DeviceClassName: "trainer"}, {Name: "gpu", DeviceClassName: "shared"},
		}},
	}
	for request, want := range map[string]string{"gpu": "small", "any/best": "trainer", "any/gpu": "shared", "any": "", "other": ""} {
		if got := classOf(requests, request); got != want {
			t.Errorf("request %s has class %q, want %q", request, got, want)
		}
	}
}
