package admission

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
)

// ready is a listener with connections that wait for Accept.
type ready struct {
	net.Listener
	accepted int
}

func (r *ready) Accept() (net.Conn, error) {
	r.accepted++
	c, _ := net.Pipe()
	return c, nil
}

func (r *ready) Close() error { return nil }

// As many connections are served as there are places; the next has the place of one that
// goes.
func TestConnectionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &ready{}
		l := limit(all, 2)
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
		for range 2 { // a server may close one twice
			_ = served[0].Close()
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
