// Package chart tests the Helm chart as users get it: rendered by the pinned
// helm, for the default values and for typical others, against golden files
// (go test ./test/chart -update writes them), and with bad values, which must be
// refused with the name of the value.
package chart

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/hack/toolbox"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	chartDir   = "../../deployments/helm/dovetail"
	kubernetes = "1.37.2"
)

// helm runs the pinned helm, away from anybody's configuration and cluster.
func helm(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	path, err := toolbox.Path(context.Background(), "helm", os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = []string{"HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_DATA_HOME=" + home, "KUBECONFIG=/nowhere", "PATH=" + os.Getenv("PATH")}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

func template(t *testing.T, args ...string) (string, string, error) {
	t.Helper()
	return helm(t, append([]string{"template", "dovetail", chartDir, "--namespace", "dovetail-system", "--kube-version", kubernetes}, args...)...)
}

func TestGolden(t *testing.T) {
	tests := []struct {
		name string
		args []string
	}{
		{"default", nil},
		{"simulated", []string{"-f", chartDir + "/ci/simulated-values.yaml"}},
		{"extended-resource", []string{"--set", "deviceClasses.gpu.extendedResourceName=nvidia.com/gpu"}},
		{"runtime-class", []string{"--set", "gpuAccess=runtimeClass"}},
		{"shares", []string{"-f", "testdata/shares-values.yaml"}},
		{"without-mps", []string{"--set", "mps.enabled=false"}},
		{"gpus-only", []string{"--set", "nics.enabled=false"}},
		{"nics-only", []string{"--set", "gpuAccess=none", "--set", "mps.enabled=false"}},
		{"without-controller", []string{"--set", "controller.enabled=false"}},
		{"everything", []string{"-f", "testdata/everything-values.yaml"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name != "default" { // they are long, and the same for all
				tt.args = append(tt.args, "--set", "crds.install=false")
			}
			got, stderr, err := template(t, tt.args...)
			if err != nil {
				t.Fatalf("helm template: %v\n%s", err, stderr)
			}
			checkTypes(t, got)
			golden := filepath.Join("testdata", tt.name+".yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the chart renders otherwise than in %s; if that is meant, run go test ./test/chart -update\n%s", golden, difference(string(want), got))
			}
		})
	}
}

// difference shows the first line that differs, with what is around it.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	at := 0
	for at < len(w) && at < len(g) && w[at] == g[at] {
		at++
	}
	around := func(lines []string) string {
		return strings.Join(lines[min(max(0, at-3), len(lines)):min(at+4, len(lines))], "\n")
	}
	return "golden:\n" + around(w) + "\nrendered:\n" + around(g)
}

func TestBadValues(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{"typo at the top", []string{"--set", "gpuAcess=none"}, []string{"gpuAcess"}},
		{"typo inside", []string{"--set", "hardware.driveroot=/x"}, []string{"/hardware", "driveroot"}},
		{"not one of the words", []string{"--set", "gpuAccess=some"}, []string{"/gpuAccess", "privileged", "runtimeClass", "none"}},
		{"text for a number", []string{"--set-string", "http.port=web"}, []string{"/http/port", "integer"}},
		{"number out of range", []string{"--set", "http.port=70000"}, []string{"/http/port", "65,535"}},
		{"text for a boolean", []string{"--set-string", "hardware.driverRootReadOnly=yes"}, []string{"/hardware/driverRootReadOnly", "boolean"}},
		{"relative path", []string{"--set", "kubelet.dir=var/lib/kubelet"}, []string{"/kubelet/dir"}},
		{"list item", []string{"--set", "tolerations[0].operatr=Exists"}, []string{"/tolerations/0", "operatr"}},
		{"no resource name", []string{"--set", "deviceClasses.gpu.extendedResourceName=gpu"}, []string{"/deviceClasses/gpu/extendedResourceName"}},
		{"typo in mps", []string{"--set", "mps.enable=false"}, []string{"/mps", "enable"}},
		{"memory of mps", []string{"--set", "mps.resources.memory=1Gi"}, []string{"/mps/resources", "memory"}},
		{"name of a share", []string{"--set-json", `shares=[{"name":"1-small","kind":"mps","memory":"1Gi"}]`}, []string{"/shares/0/name"}},
		{"kind of a share", []string{"--set-json", `shares=[{"name":"small","kind":"mig","memory":"1Gi"}]`}, []string{"/shares/0/kind", "timeslice"}},
		{"share without memory", []string{"--set-json", `shares=[{"name":"small","kind":"mps"}]`}, []string{"/shares/0", "memory"}},
		{"no memory", []string{"--set-json", `shares=[{"name":"small","kind":"mps","memory":"0Gi"}]`}, []string{"/shares/0/memory"}},
		{"too much compute", []string{"--set-json", `shares=[{"name":"small","kind":"mps","memory":"1Gi","compute":101}]`}, []string{"/shares/0/compute", "100"}},
		{"compute of a time slice", []string{"--set-json", `shares=[{"name":"turn","kind":"timeslice","memory":"1Gi","compute":1}]`}, []string{"shares: turn: compute", "leave it out"}},
		{"share twice", []string{"--set-json", `shares=[{"name":"s","kind":"mps","memory":"1Gi"},{"name":"s","kind":"timeslice","memory":"1Gi"}]`}, []string{`the name "s" is there twice`}},
		{"no time slice", []string{"--set", "timeSliceClients=0"}, []string{"/timeSliceClients", "1"}},
		{"typo in a rule", []string{"--set-json", `network=[{"node":["*"]}]`}, []string{"/network/0", "node"}},
		{"address of a pair", []string{"--set-json", `network=[{"nodes":["*"],"pairs":[{"gpu":"1b:00.0","nic":"0000:1a:00.0"}]}]`}, []string{"/network/0/pairs/0/gpu"}},
		{"no virtual functions", []string{"--set-json", `network=[{"nodes":["*"],"virtualFunctions":[{"nic":"0000:1a:00.0","count":0}]}]`}, []string{"/network/0/virtualFunctions/0/count", "1"}},
		{"a ninth priority", []string{"--set-json", `network=[{"nodes":["*"],"lossless":{"pfcPriorities":[8]}}]`}, []string{"/network/0/lossless/pfcPriorities/0", "7"}},
		{"no replica", []string{"--set", "controller.replicas=0"}, []string{"/controller/replicas", "1"}},
		{"typo in controller", []string{"--set", "controller.replica=1"}, []string{"/controller", "replica"}},
		{"CRDs", []string{"--set-string", "crds.install=no"}, []string{"/crds/install", "boolean"}},
		{"failure policy", []string{"--set", "webhook.failurePolicy=ignore"}, []string{"/webhook/failurePolicy", "Ignore", "Fail"}},
		{"an hour's wait", []string{"--set", "webhook.timeoutSeconds=3600"}, []string{"/webhook/timeoutSeconds", "30"}},
		{"an address without its length", []string{"--set", "webhook.allowedCIDRs={192.0.2.1}"}, []string{"/webhook/allowedCIDRs/0", "192.0.2.1"}},
		{"capability with its prefix", []string{"--set", "gpuAccess=none", "--set", "extraCapabilities={CAP_SYS_ADMIN}"}, []string{"extraCapabilities: CAP_SYS_ADMIN", "want SYS_ADMIN"}},
		{"no runtime class", []string{"--set", "gpuAccess=runtimeClass", "--set", "runtimeClassName="}, []string{"runtimeClassName: is empty", "as a rule nvidia"}},
		{"shares by nobody", []string{"--set", "mps.enabled=false", "--set-json", `shares=[{"name":"small","kind":"mps","memory":"1Gi"}]`}, []string{"shares: small: kind: mps", "mps.enabled is false", "timeslice"}},
		{"pull policy", []string{"--set", "image.pullPolicy=never"}, []string{"/image/pullPolicy", "Never"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr, err := template(t, tt.args...)
			if err == nil {
				t.Fatal("the chart took it")
			}
			for _, want := range tt.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("the message does not say %q:\n%s", want, stderr)
				}
			}
		})
	}
}

// NVIDIA's runtime starts no container that asks for MIG's capabilities without
// CAP_SYS_ADMIN, and knows nothing of one that runs without it.
func TestMIGCapabilities(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want int
	}{
		{[]string{"--set", "gpuAccess=runtimeClass"}, 1},
		{[]string{"--set", "gpuAccess=runtimeClass", "--set", "nics.enabled=false"}, 0},
		{[]string{"--set", "gpuAccess=runtimeClass", "--set", "nics.enabled=false", "--set", "extraCapabilities={SYS_ADMIN}"}, 1},
		{[]string{"--set", "gpuAccess=runtimeClass", "--set", "nics.enabled=false", "--set", "extraCapabilities={ALL}"}, 1},
		{[]string{"--set", "gpuAccess=none", "--set", "extraCapabilities={SYS_ADMIN}"}, 0},
	} {
		got, stderr, err := template(t, tt.args...)
		if err != nil {
			t.Fatalf("helm template: %v\n%s", err, stderr)
		}
		for _, name := range []string{"NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_MIG_MONITOR_DEVICES"} {
			if n := strings.Count(got, "- name: "+name+"\n              value: all\n"); n != tt.want {
				t.Errorf("%v: %s is asked for %d times, want %d", tt.args, name, n, tt.want)
			}
		}
	}
}

// Without a controller nobody answers, so nobody must be asked.
func TestWebhookNeedsTheController(t *testing.T) {
	for _, value := range []string{"controller.enabled=false", "webhook.enabled=false"} {
		got, stderr, err := template(t, "--set", value)
		if err != nil {
			t.Fatalf("helm template: %v\n%s", err, stderr)
		}
		for _, trace := range []string{"ValidatingWebhookConfiguration", "--webhook-address", "dovetail-webhook"} {
			if strings.Contains(got, trace) {
				t.Errorf("%s: there is still %s", value, trace)
			}
		}
	}
}

func TestOldKubernetes(t *testing.T) {
	_, stderr, err := helm(t, "template", "dovetail", chartDir, "--kube-version", "1.35.0")
	if err == nil || !strings.Contains(stderr, "1.37") {
		t.Errorf("error %v: %s; want one that names the Kubernetes that is needed", err, stderr)
	}
}

func TestNotes(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"rollout status daemonset/dovetail-node", "rollout status deployment/dovetail-controller", "gpu.dovetail.dev", "pod-security.kubernetes.io/enforce=privileged"}},
		{[]string{"--set", "deviceClasses.gpu.extendedResourceName=nvidia.com/gpu"}, []string{"nvidia.com/gpu: 1"}},
	} {
		out, stderr, err := helm(t, append([]string{"install", "dovetail", chartDir, "--namespace", "dovetail-system", "--dry-run=client"}, tt.args...)...)
		if err != nil {
			t.Fatalf("helm install --dry-run: %v\n%s", err, stderr)
		}
		_, notes, _ := strings.Cut(out, "NOTES:")
		for _, want := range tt.want {
			if !strings.Contains(notes, want) {
				t.Errorf("%v: the notes do not say %q:\n%s", tt.args, want, notes)
			}
		}
	}
}
