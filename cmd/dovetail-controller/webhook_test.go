package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionapi "k8s.io/api/admission/v1"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dovetail-dra/dovetail/pkg/admission"
	"github.com/dovetail-dra/dovetail/pkg/admission/fleet/fleettest"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/test/apiserver"
)

const webhookNamespace, webhookName = "dovetail-system", "dovetail-webhook"

// TestWebhook: the command serves a certificate that the API server trusts, and knows
// the cluster's classes and devices.
func TestWebhook(t *testing.T) {
	config := apiserver.Start(t)
	api, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	prepareCluster(t, api)
	address := freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	root := newRoot()
	root.SetArgs([]string{
		"run", "--kubeconfig", kubeconfig(t, config), "--leader-elect=false", "--metrics-address=0", "--health-address=0",
		"--webhook-address", address, "--webhook-namespace", webhookNamespace,
	})
	go func() { ended <- root.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	var last *admissionapi.AdmissionResponse
	for _, test := range []struct {
		memory string
		want   func(r *admissionapi.AdmissionResponse) bool
	}{
		{"0", func(r *admissionapi.AdmissionResponse) bool {
			return !r.Allowed && strings.Contains(r.Result.Message, "1Mi")
		}},
		{"500Gi", func(r *admissionapi.AdmissionResponse) bool {
			return r.Allowed && len(r.Warnings) == 1 && strings.Contains(r.Warnings[0], "the nearest is Tesla T4")
		}},
		{"1Gi", func(r *admissionapi.AdmissionResponse) bool { return r.Allowed && len(r.Warnings) == 0 }},
	} {
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patiencetest.Limit, true, func(context.Context) (bool, error) {
			last = review(t, api, address, test.memory)
			return last != nil && test.want(last), nil
		})
		if err != nil {
			t.Fatalf("memory %s: %+v", test.memory, last)
		}
	}
}

// prepareCluster makes what the chart and a node make.
func prepareCluster(t *testing.T, api client.Client) {
	t.Helper()
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: webhookNamespace}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: webhookNamespace, Name: webhookName}},
		&admissionregistration.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: webhookName},
			Webhooks: []admissionregistration.ValidatingWebhook{{
				Name: "claims.dovetail.dev", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistration.SideEffectClassNone),
				ClientConfig: admissionregistration.WebhookClientConfig{Service: &admissionregistration.ServiceReference{Namespace: webhookNamespace, Name: webhookName}},
			}},
		},
		&resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "mps"}, Spec: resourceapi.DeviceClassSpec{
			Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
				Expression: `device.driver == "dovetail.dev" && device.attributes["dovetail.dev"].type == "mps"`,
			}}},
		}},
	}
	slices := fleettest.Slices(t, "node-1", "t4")
	for _, s := range slices {
		s.UID = ""
		s.Spec.NodeName = ptr.To("node-1")
		s.Spec.Pool = resourceapi.ResourcePool{Name: "node-1", ResourceSliceCount: int64(len(slices))}
		objects = append(objects, s)
	}
	for _, o := range objects {
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// review asks as the API server does, which reaches no Service here; nil where that does
// not work yet.
func review(t *testing.T, api client.Client, address, memory string) *admissionapi.AdmissionResponse {
	t.Helper()
	var trusted admissionregistration.ValidatingWebhookConfiguration
	if err := api.Get(t.Context(), client.ObjectKey{Name: webhookName}, &trusted); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(trusted.Webhooks[0].ClientConfig.CABundle) {
		return nil
	}
	caller := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: roots, ServerName: webhookName + "." + webhookNamespace + ".svc", MinVersion: tls.VersionTLS13,
	}}}
	body, err := json.Marshal(admissionapi.AdmissionReview{Request: &admissionapi.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind{Group: resourceapi.GroupName, Version: "v1", Kind: "ResourceClaim"},
		Object: runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"mps","capacity":{"requests":{"memory":%q}}}}]}}}`, memory)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+admission.Path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := caller.Do(request)
	if err != nil {
		return nil
	}
	defer func() { _ = response.Body.Close() }()
	var answer admissionapi.AdmissionReview
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer.Response
}

// freeAddress is one that stays free until this process listens there: of the loopback's
// addresses each process has its own.
func freeAddress(t *testing.T) string {
	t.Helper()
	own := binary.BigEndian.AppendUint32(nil, uint32(os.Getpid())) // of 22 bits at most
	own[0], own[1] = 127, own[1]+1
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(net.IP(own).String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
