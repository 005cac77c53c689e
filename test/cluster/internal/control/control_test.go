package control

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestCall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if _, err := Call(path, Request{Op: "x"}); err == nil {
		t.Error("an answer from nobody")
	}
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go Serve(l, func(r Request) (Answer, error) {
		if r.Op == "bad" {
			return Answer{}, errors.New("it is bad")
		}
		return Answer{Nodes: []Node{{Name: r.Node, Ready: true}}}, nil
	})
	ans, err := Call(path, Request{Op: "good", Node: "n"})
	if err != nil || len(ans.Nodes) != 1 || ans.Nodes[0].Name != "n" {
		t.Errorf("%+v, %v", ans, err)
	}
	if _, err := Call(path, Request{Op: "bad"}); err == nil || err.Error() != "it is bad" {
		t.Errorf("got %v", err)
	}
	if pid, err := PID(path); pid != os.Getpid() || err != nil {
		t.Errorf("got %d, %v", pid, err)
	}
}
