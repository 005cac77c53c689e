package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/test/apiserver"
)

// It becomes ready, shows its metrics, and ends when it is told to.
func TestRun(t *testing.T) {
	server := apiserver.Start(t)
	health, metrics := freeAddress(t), freeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	root := newRoot()
	root.SetArgs([]string{"run", "--kubeconfig=" + kubeconfig(t, server), "--lease-namespace=default", "--health-address=" + health, "--metrics-address=" + metrics})
	go func() { ended <- root.ExecuteContext(ctx) }()

	until(t, health, "/healthz", "ok")
	until(t, health, "/readyz", "ok")
	until(t, metrics, "/metrics", `leader_election_master_status{name="dovetail-controller"} 1`)
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patiencetest.Limit):
		t.Error("it does not end")
	}
}

func until(t *testing.T, address, path, want string) {
	t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patiencetest.Limit, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			last = err.Error() // it does not listen yet
			return false, nil
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		last = fmt.Sprint(response.Status, " ", string(body))
		return response.StatusCode == http.StatusOK && strings.Contains(last, want), err
	})
	if err != nil {
		t.Fatalf("%s: %v; %q is not in %s", path, err, want, last)
	}
}
