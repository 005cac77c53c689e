package agent

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/telemetry"
)

func TestKubeletsCalls(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	c := r.create("a", claimtest.Exclusive, "gpu-1b-00", "gpu-43-00")
	response, err := r.prepare(c)
	if err != nil || response.Error != "" || len(response.Devices) != 2 {
		t.Fatalf("prepare: %v, %v", response, err)
	}
	first := response.Devices[0]
	if first.PoolName != claimtest.Pool || first.DeviceName != "gpu-1b-00" || first.CdiDeviceIds[0] != "dovetail.dev/claim=uid-a_gpu_gpu-1b-00" {
		t.Errorf("device %v", first)
	}
	metadata, err := os.ReadFile(filepath.Join(r.dir, "plugin/dra-device-metadata/default_a/gpu/metadata.json"))
	if err != nil || !strings.Contains(string(metadata), "NVIDIA H100") {
		t.Errorf("metadata %s, %v", metadata, err)
	}
	if got := r.files(); len(got) != 4 { // record, CDI spec, metadata and its CDI spec
		t.Errorf("files %q", got)
	}
	r.unprepare(c)
	if got := r.files(); len(got) != 0 {
		t.Errorf("left: %q", got)
	}

	bad := r.create("bad", `{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig","computeMode":"Fast"}`, "gpu-1b-00")
	response, err = r.prepare(bad)
	if err != nil || !strings.Contains(response.Error, "claim default/bad: ") || !strings.Contains(response.Error, `"Fast"`) {
		t.Errorf("bad parameters: %v, %v", response, err)
	}
	if got := r.files(); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
	if err := r.end(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	for _, dir := range []string{"claims", "removed"} {
		err := filepath.WalkDir(filepath.Join(r.dir, "plugin", dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				t.Errorf("left by the agent: %s", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if dirs, err := os.ReadDir(filepath.Join(r.dir, "plugin/dra-device-metadata")); err != nil || len(dirs) != 0 {
		t.Errorf("left of the metadata: %v, %v", dirs, err)
	}
}

func TestSlicesArePublished(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	const each = 1 + 2 + 25 + 1 + 3 // a GPU, its shares, partitions and monitor; its NIC, RDMA device and pair
	r.published("every device", func(devices map[string]resourceapi.Device) bool { return len(devices) == 8*each })
}

func TestStopLetsCallsFinish(t *testing.T) {
	t.Parallel()
	var hands *claimtest.Held
	r := start(t, func(g hardware.GPUs) hardware.GPUs { hands = claimtest.Hold(g); return hands })
	c := r.create("a", claimtest.Exclusive, "gpu-1b-00")
	type answer struct {
		response *drapb.NodePrepareResourceResponse
		err      error
	}
	answered := make(chan answer, 1)
	go func() {
		response, err := r.prepare(c)
		answered <- answer{response, err}
	}()
	<-hands.Entered
	r.stop()
	close(hands.Let)
	if got := <-answered; got.err != nil || got.response.Error != "" {
		t.Errorf("the call under way: %v, %v", got.response, got.err)
	}
	if err := r.end(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
}

func TestAddressInUseIsSaid(t *testing.T) {
	_, err := startServer("256.0.0.1:1", telemetry.New("test"), func() error { return nil }, func() error { return nil }, func(error) {})
	if err == nil || !strings.Contains(err.Error(), "--http-address") {
		t.Errorf("error %v", err)
	}
}

func TestProbes(t *testing.T) {
	notYet := errors.New("not yet")
	recorder := func(check func() error) (int, string) {
		w := &response{}
		answer(check)(w, nil)
		return w.status, w.String()
	}
	if status, body := recorder(func() error { return nil }); status != 0 || body != "ok\n" {
		t.Errorf("healthy: %d %q", status, body)
	}
	if status, body := recorder(func() error { return notYet }); status != http.StatusServiceUnavailable || body != "not yet\n" {
		t.Errorf("not ready: %d %q", status, body)
	}
}

type response struct {
	strings.Builder
	status int
}

func (r *response) Header() http.Header    { return http.Header{} }
func (r *response) WriteHeader(status int) { r.status = status }

var _ io.Writer = &response{}
