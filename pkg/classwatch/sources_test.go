package classwatch

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	kubetesting "k8s.io/client-go/testing"
)

// server serves one PartitionClass, and then another one by watch, as the API server
// does.
type server struct {
	mu    sync.Mutex
	paths []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.paths = append(s.paths, r.URL.Path)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	class := func(name string, version int) string {
		return fmt.Sprintf(`{"apiVersion":"dovetail.dev/v1alpha1","kind":"PartitionClass","metadata":{"name":%q,"resourceVersion":"%d"},"spec":{"shape":{"mig":{"memory":"10G"}}},"status":{"devices":3}}`, name, version)
	}
	if r.URL.Query().Get("watch") == "" {
		fmt.Fprintf(w, `{"apiVersion":"dovetail.dev/v1alpha1","kind":"PartitionClassList","metadata":{"resourceVersion":"1"},"items":[%s]}`, class("one", 1))
		return
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		http.Error(w, "", http.StatusUnprocessableEntity) // as servers of before 1.32
		return
	}
	fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", class("two", 2))
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func TestSources(t *testing.T) {
	api := &server{}
	web := httptest.NewServer(api)
	defer web.Close()
	defer web.CloseClientConnections()
	classes, err := Classes(&rest.Config{Host: web.URL, ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"}})
	if err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"pool": "a"}}})
	changed := make(chan struct{}, 100)
	w := New(classes, Node(kube, "node-1"), func() { changed <- struct{}{} })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go w.Run(ctx)
	for late := time.After(time.Minute); ; {
		select {
		case <-changed:
		case <-late:
			t.Fatal("what there is does not become known")
		}
		if known, ok := w.Known(); ok && len(known.Classes) == 2 {
			if known.Classes[1].Name != "two" || known.Classes[1].Spec.Shape.MIG.Memory.Value() != 10e9 || known.NodeLabels["pool"] != "a" {
				t.Errorf("known: %+v", known)
			}
			break
		}
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	if paths := slices.Compact(api.paths); !slices.Equal(paths, []string{"/apis/dovetail.dev/v1alpha1/partitionclasses"}) {
		t.Errorf("asked for %q", paths)
	}
	// The agent has no leave to list nodes.
	for _, action := range kube.Actions() {
		switch of := action.(type) {
		case kubetesting.GetAction:
			if of.GetName() == "node-1" {
				continue
			}
		case kubetesting.WatchAction:
			if of.GetWatchRestrictions().Fields.String() == "metadata.name=node-1" {
				continue
			}
		}
		t.Errorf("asked of nodes: %v", action)
	}
}
