// Package apiserver runs a real kube-apiserver with its etcd, of the test cluster's
// binaries, for tests that want the API's own validation and storage but no nodes.
package apiserver

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/dovetail-dra/dovetail/hack/toolbox"
)

// crds has the CustomResourceDefinitions of the chart.
const crds = "deployments/helm/dovetail/files"

// Start runs an API server with Dovetail's CustomResourceDefinitions until the test
// ends, and returns how to reach it as an administrator. Where the test cluster was
// never built it skips the test.
func Start(t testing.TB) *rest.Config {
	t.Helper()
	log.SetLogger(klog.Background())
	bin := binaries(t)
	root, err := toolbox.Root()
	if err != nil {
		t.Fatal(err)
	}
	server := &envtest.Environment{
		BinaryAssetsDirectory: bin,
		CRDDirectoryPaths:     []string{filepath.Join(root, crds)},
		ErrorIfCRDPathMissing: true,
		// On a busy machine, too.
		ControlPlaneStartTimeout: 2 * time.Minute,
		ControlPlaneStopTimeout:  2 * time.Minute,
	}
	config, err := server.Start()
	if err != nil {
		t.Fatalf("start kube-apiserver and etcd of %s: %v", bin, err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return config
}

// binaries is the folder of the test cluster that was built last.
func binaries(t testing.TB) string {
	t.Helper()
	cache, err := toolbox.Cache()
	if err != nil {
		t.Fatal(err)
	}
	complete, err := filepath.Glob(filepath.Join(cache, "cluster-*", "complete"))
	if err != nil {
		t.Fatal(err)
	}
	newest, at := "", int64(0)
	for _, marker := range complete {
		if info, err := os.Stat(marker); err == nil && info.ModTime().UnixNano() > at {
			newest, at = filepath.Join(filepath.Dir(marker), "bin"), info.ModTime().UnixNano()
		}
	}
	if newest == "" {
		t.Skip("needs kube-apiserver and etcd of the test cluster: make cluster-build")
	}
	return newest
}
