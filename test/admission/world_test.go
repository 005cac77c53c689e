// Package admission tries the chart's webhook and policies, and what Kubernetes does for
// tenants, on a real API server: no nodes, but the API's own validation, admission and
// permissions.
package admission

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/admission"
	"github.com/dovetail-dra/dovetail/pkg/admission/fleet/fleettest"
	"github.com/dovetail-dra/dovetail/pkg/certificates"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/test/apiserver"
)

// namespace and release of the rendered chart.
const (
	namespace = "dovetail-system"
	webhook   = "dovetail-webhook"
	rendered  = "../chart/testdata/default.yaml"
)

// world is an API server with the chart's objects, and a webhook beside it.
type world struct {
	*testing.T
	client.Client
	config   *rest.Config
	scheme   *runtime.Scheme
	warnings *recorder
	// calls that the webhook has had.
	calls *atomic.Int64
	// stop ends the webhook.
	stop func()
}

// recorder keeps warnings of the API server.
type recorder struct {
	mu   sync.Mutex
	text []string
}

func (r *recorder) HandleWarningHeader(_ int, _, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, text)
}

// take returns what came since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.text
	r.text = nil
	return text
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, config: apiserver.Start(t), scheme: runtime.NewScheme(), warnings: &recorder{}, calls: &atomic.Int64{}}
	w.config.WarningHandler = w.warnings
	w.must(scheme.AddToScheme(w.scheme))
	w.must(v1alpha1.AddToScheme(w.scheme))
	w.Client = w.as(w.config)
	w.must(w.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	w.must(err)
	w.install("https://localhost:" + port(listener) + admission.Path)
	w.serve(listener)
	return w
}

func port(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) as(config *rest.Config) client.Client {
	w.Helper()
	c, err := client.New(config, client.Options{Scheme: w.scheme})
	w.must(err)
	return c
}

// serviceAccount of the chart, on a node where there is one.
func (w *world) serviceAccount(name, node string) *rest.Config {
	config := rest.CopyConfig(w.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		Extra:    map[string][]string{},
	}
	if node != "" {
		config.Impersonate.Extra["authentication.kubernetes.io/node-name"] = []string{node}
	}
	return config
}

// install makes the chart's objects that need no nodes. The webhook is called at url,
// since nothing leads to Services here.
func (w *world) install(url string) {
	w.Helper()
	content, err := os.ReadFile(rendered)
	w.must(err)
	seen := map[string]int{}
	for document := range strings.SplitSeq("\n"+string(content), "\n---\n") {
		object, kind, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
		if err != nil {
			continue // the CustomResourceDefinition, which is there already
		}
		switch o := object.(type) {
		case *admissionregistration.ValidatingWebhookConfiguration:
			for i := range o.Webhooks {
				o.Webhooks[i].ClientConfig.Service, o.Webhooks[i].ClientConfig.URL = nil, &url
				o.Webhooks[i].TimeoutSeconds = ptr.To[int32](30) // on a busy machine nothing is to be let through for being late
			}
		default:
			switch kind.Kind {
			case "Secret", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "DeviceClass",
				"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			default:
				continue
			}
		}
		w.must(w.Create(w.Context(), object.(client.Object)))
		seen[kind.Kind]++
	}
	for _, kind := range []string{"Secret", "Role", "ClusterRole", "DeviceClass", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy"} {
		if seen[kind] == 0 {
			w.Fatalf("%s has no %s", rendered, kind)
		}
	}
}

// serve runs the webhook as the controller does, with its permissions.
func (w *world) serve(listener net.Listener) {
	w.Helper()
	kube, err := kubernetes.NewForConfig(w.serviceAccount("dovetail-controller", ""))
	w.must(err)
	keeper, err := certificates.New(certificates.Config{
		Kube: kube, Namespace: namespace, Secret: webhook, Webhooks: webhook,
		Names: certificates.Names{Authority: "dovetail test", DNS: []string{webhook + "." + namespace + ".svc", "localhost"}},
		Clock: clock.RealClock{},
	})
	w.must(err)
	checker := &admission.Checker{Classes: admission.NewClasses(), Fleet: fleettest.New(w.T, "dgx-h100")}
	administrator, err := kubernetes.NewForConfig(w.config)
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactory(administrator, 0)
	_, err = factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(checker.Classes)
	w.must(err)
	factory.StartWithContext(ctx)
	handler := &admission.Handler{Checker: checker}
	server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.calls.Add(1)
		handler.ServeHTTP(rw, r)
	}), TLSConfig: admission.TLS(keeper.Certificate), ReadHeaderTimeout: patiencetest.Limit}
	var ended sync.WaitGroup
	ended.Go(func() { _ = server.ServeTLS(listener, "", "") })
	ended.Go(func() {
		if err := keeper.Start(ctx); err != nil {
			w.Error(err)
		}
	})
	w.stop = sync.OnceFunc(func() {
		cancel()
		_ = server.Close()
		ended.Wait()
		factory.Shutdown()
	})
	w.Cleanup(w.stop)
}

// eventually waits for what comes by watches.
func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	err := wait.PollUntilContextTimeout(w.Context(), 50*time.Millisecond, patiencetest.Limit, true, func(context.Context) (bool, error) { return ok(), nil })
	if err != nil {
		w.Fatalf("never: %s", what)
	}
}

// tryOut creates an object without keeping it.
func (w *world) tryOut(o client.Object) error {
	return w.Create(w.Context(), o, client.DryRunAll)
}

// refused wants an error with all of the words; no words means none.
func refused(t *testing.T, err error, words ...string) {
	t.Helper()
	if len(words) == 0 {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("not refused; want %q", words)
	}
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		t.Errorf("refused for another reason: %v", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in %q", word, err)
		}
	}
}

// claim of one request.
func claim(namespace, name string, exactly resourceapi.ExactDeviceRequest) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "r", Exactly: &exactly}},
		}},
	}
}
