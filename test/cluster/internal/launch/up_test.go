package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

func TestFollow(t *testing.T) {
	for _, x := range []struct{ name, progress, err string }{
		{"up", "a step\nready\n", ""},
		{"failed", "a step\nfailed: no etcd\n", "did not come up: no etcd"},
		{"killed", "a step\n", "init ended before"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var out bytes.Buffer
			err := follow(strings.NewReader(x.progress), &out, time.Now())
			if (err == nil) != (x.err == "") || (err != nil && !strings.Contains(err.Error(), x.err)) {
				t.Errorf("got %v", err)
			}
			if !strings.HasSuffix(out.String(), " s  a step\n") {
				t.Errorf("said %q", out.String())
			}
		})
	}
}

func TestLogTail(t *testing.T) {
	c := &state.Cluster{Dir: t.TempDir()}
	if err := os.Mkdir(c.Logs(), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"etcd": "other", "kubelet": strings.Repeat("early\n", 30) + "bad flag\n"} {
		if err := os.WriteFile(c.Log(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := logTail(c, "kubelet ended; its log is kubelet.log")
	if !strings.Contains(got, "bad flag") || strings.Count(got, "\n") > 20 || strings.Contains(got, "other") {
		t.Errorf("got %q", got)
	}
	if got := logTail(c, "something else"); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestRemoveState(t *testing.T) {
	top := t.TempDir()
	c := &state.Cluster{Name: "x", Dir: filepath.Join(top, "x"), Nodes: []string{"node-1"}}
	if err := c.Create(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // idempotent
		if err := removeState(c); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(c.Dir); err == nil {
		t.Error("the state is left")
	}
	foreign := &state.Cluster{Name: "x", Dir: top}
	if err := os.WriteFile(filepath.Join(top, "precious"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := removeState(foreign); err == nil {
		t.Error("a directory that is no cluster's was removed")
	}
	if _, err := os.Stat(filepath.Join(top, "precious")); err != nil {
		t.Error(err)
	}
}
