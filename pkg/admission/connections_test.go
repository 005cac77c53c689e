package admission

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"

	"golang.org/x/net/netutil"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// All that reviews may take at a time fits beside the caches of a large cluster into what
// the chart gives the controller.
func TestReviewsFitIntoTheContainer(t *testing.T) {
	const (
		waiting = 64 << 10  // a request; measured with all connections full of them
		caches  = 140 << 20 // of 1,000 nodes, twice over for what Go has not collected
	)
	content, err := os.ReadFile("../../deployments/helm/dovetail/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Controller struct{ Resources corev1.ResourceRequirements }
	}
	if err := yaml.Unmarshal(content, &values); err != nil {
		t.Fatal(err)
	}
	limit := values.Controller.Resources.Limits.Memory().Value()
	if all := int64(maxConnections*(streams*waiting+received) + maxRead + maxDecoded + caches); all > limit {
		t.Errorf("%d MiB, of %d MiB", all>>20, limit>>20)
	}
}

// ready is a listener with connections that wait for Accept.
type ready struct {
	net.Listener
	accepted int
	closed   bool
}

func (r *ready) Accept() (net.Conn, error) {
	if r.closed {
		return nil, net.ErrClosed
	}
	r.accepted++
	c, _ := net.Pipe()
	return c, nil
}

func (r *ready) Close() error {
	r.closed = true
	return nil
}

// As many connections are served as there are places; the next has the place of one that
// goes.
func TestConnectionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &ready{}
		l := netutil.LimitListener(all, 2)
		var served []net.Conn
		ended := make(chan error, 1)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					ended <- err
					return
				}
				served = append(served, c)
			}
		}()
		synctest.Wait()
		if all.accepted != 2 {
			t.Fatalf("%d are served", all.accepted)
		}
		first := served[0]
		for range 2 { // a server may close one twice
			_ = first.Close()
		}
		synctest.Wait()
		if all.accepted != 3 {
			t.Errorf("%d have been served when one has gone", all.accepted)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("a listener that is closed while there is no place: %v", err)
		}
	})
}
