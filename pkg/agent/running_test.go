package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/telemetry"
)

// running is an agent with a fake API server, and a kubelet played by the test.
type running struct {
	*claimtest.World
	t       *testing.T
	dir     string
	kube    *fake.Clientset
	metrics *telemetry.Metrics
	stop    context.CancelFunc
	ended   chan error
	kubelet drapb.DRAPluginClient
	classes *classSource
}

// start starts an agent on a dgx-h100 and registers it. wrap may put something
// between it and its GPUs.
func start(t *testing.T, wrap func(hardware.GPUs) hardware.GPUs) *running {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // sockets want short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w, err := claimtest.Create(filepath.Join(dir, "world"), "dgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"plugin", "registry", "cdi"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r := &running{World: w, t: t, dir: dir, classes: newClassSource(), ended: make(chan error, 1), metrics: telemetry.New("test"),
		kube: fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claimtest.Pool, UID: "node-uid"}})}
	nameSlices(r.kube)
	if wrap != nil {
		w.GPUs = wrap(w.GPUs)
	}
	boot, err := w.Machine.State()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	a, err := New(ctx, Config{
		NodeName: claimtest.Pool, PluginDir: filepath.Join(dir, "plugin"), RegistryDir: filepath.Join(dir, "registry"),
		CDIDir: filepath.Join(dir, "cdi"), HTTPAddress: "127.0.0.1:0", Kube: r.kube, Classes: r.classes, GPUs: w.GPUs, MPS: w.Sharing,
		Describe: func(ctx context.Context) (machine.Machine, error) {
			m, err := w.Describe(ctx)
			if err != nil {
				return machine.Machine{}, err
			}
			return *m, nil
		},
		Edits: w.Edits, HardwareChanged: func() {}, Metrics: r.metrics,
		BootID: boot.BootID, PodResources: filepath.Join(dir, "pods.sock"),
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- a.Run(ctx) }()
	t.Cleanup(func() { r.end() })
	r.register()
	return r
}

// nameSlices does what the fake leaves out: generateName.
func nameSlices(kube *fake.Clientset) {
	var count atomic.Int64
	kube.PrependReactor("create", "resourceslices", func(action kubetesting.Action) (bool, runtime.Object, error) {
		slice := action.(kubetesting.CreateAction).GetObject().(*resourceapi.ResourceSlice)
		slice.Name = fmt.Sprintf("%s%d", slice.GenerateName, count.Add(1))
		return false, nil, nil
	})
}

// end stops the agent as a signal does and returns what Run returned.
func (r *running) end() error {
	r.t.Helper()
	r.stop()
	select {
	case err := <-r.ended:
		r.ended <- err
		return err
	case <-time.After(time.Minute):
		r.t.Fatal("the agent does not end")
		return nil
	}
}

// register does what the kubelet does when it finds the agent's socket.
func (r *running) register() {
	r.t.Helper()
	registration := registerapi.NewRegistrationClient(r.dial(filepath.Join(r.dir, "registry", "dovetail.dev-reg.sock")))
	info, err := registration.GetInfo(r.t.Context(), &registerapi.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil || info.Name != "dovetail.dev" {
		r.t.Fatalf("registration: %v, %v", info, err)
	}
	if _, err := registration.NotifyRegistrationStatus(r.t.Context(), &registerapi.RegistrationStatus{PluginRegistered: true}); err != nil {
		r.t.Fatal(err)
	}
	r.kubelet = drapb.NewDRAPluginClient(r.dial(info.Endpoint))
}

func (r *running) dial(socket string) *grpc.ClientConn {
	r.t.Helper()
	// The agent makes its sockets when it is ready for calls.
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	return conn
}

// create puts an allocated claim into the API server.
func (r *running) create(name, parameters string, devices ...string) *drapb.Claim {
	r.t.Helper()
	return r.createWith(name, parameters, nil, devices...)
}

func (r *running) createWith(name, parameters string, annotations map[string]string, devices ...string) *drapb.Claim {
	r.t.Helper()
	c, err := r.Allocate(name, parameters, devices...)
	if err != nil {
		r.t.Fatal(err)
	}
	c.Annotations = annotations
	if _, err := r.kube.ResourceV1().ResourceClaims(c.Namespace).Create(r.t.Context(), c, metav1.CreateOptions{}); err != nil {
		r.t.Fatal(err)
	}
	return &drapb.Claim{Namespace: c.Namespace, Name: c.Name, Uid: string(c.UID)}
}

func (r *running) prepare(c *drapb.Claim) (*drapb.NodePrepareResourceResponse, error) {
	response, err := r.kubelet.NodePrepareResources(r.t.Context(), &drapb.NodePrepareResourcesRequest{Claims: []*drapb.Claim{c}})
	if err != nil {
		return nil, err
	}
	return response.Claims[c.Uid], nil
}

func (r *running) unprepare(c *drapb.Claim) {
	r.t.Helper()
	response, err := r.kubelet.NodeUnprepareResources(r.t.Context(), &drapb.NodeUnprepareResourcesRequest{Claims: []*drapb.Claim{c}})
	if err != nil || response.Claims[c.Uid].Error != "" {
		r.t.Fatalf("release: %v, %v", response, err)
	}
}

// files lists what is below the agent's directories, but for sockets, the file that
// locks are in, and the record of PartitionClasses.
func (r *running) files() []string {
	r.t.Helper()
	var found []string
	for _, sub := range []string{"plugin", "cdi"} {
		err := filepath.WalkDir(filepath.Join(r.dir, sub), func(path string, d os.DirEntry, err error) error {
			if d != nil && d.IsDir() && d.Name() == "removed" {
				return filepath.SkipDir // on its way
			}
			if err == nil && d.Type().IsRegular() && d.Name() != "lock" && d.Name() != "classes.json" && !strings.HasPrefix(d.Name(), ".spare-") {
				found = append(found, strings.TrimPrefix(path, r.dir+"/"))
			}
			return err
		})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return found
}
