package build

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/test/cluster/modules"
)

func TestKey(t *testing.T) {
	a, err := Key("go1.26.8")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Key("go1.26.8")
	c, _ := Key("go1.26.9")
	if a != b || a == c || len(a) != 16 {
		t.Errorf("keys %s %s %s", a, b, c)
	}
}

func TestCacheBase(t *testing.T) {
	for _, x := range []struct {
		dovetail, xdg, home, want string
	}{
		{"/d", "/x", "/h", "/d"},
		{"", "/x", "/h", "/x/dovetail"},
		{"", "relative", "/h", "/h/.cache/dovetail"}, // XDG says to ignore those
		{"", "", "/h", "/h/.cache/dovetail"},
		{"", "", "", ""},
	} {
		env := map[string]string{"DOVETAIL_CACHE": x.dovetail, "XDG_CACHE_HOME": x.xdg}
		got, err := cacheBase(func(k string) string { return env[k] }, x.home)
		if got != x.want || (err != nil) != (x.want == "") {
			t.Errorf("%+v: got %q, %v", x, got, err)
		}
	}
}

func TestPrograms(t *testing.T) {
	programs, err := Programs()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Program{}
	for _, p := range programs {
		byName[p.Name] = p
		if _, err := modules.Get(p.Module); err != nil {
			t.Error(err)
		}
	}
	if r := byName["runc"]; !r.Cgo || r.Tags != "seccomp" {
		t.Errorf("runc without seccomp: %+v", r)
	}
	if k := byName["kubelet"]; !strings.Contains(k.LDFlags, "component-base/version.gitMinor=37 ") {
		t.Errorf("kubelet is not stamped: %+v", k)
	}
}

// TestSteps: what is built by name lies where a build of the whole looks for it.
func TestSteps(t *testing.T) {
	c := Cache{t.TempDir()}
	whole, err := c.steps(nil)
	if err != nil {
		t.Fatal(err)
	}
	few, err := c.steps([]string{"runc", "cni/bridge"})
	if err != nil || len(few) != 2 {
		t.Fatalf("got %d steps, %v", len(few), err)
	}
	for _, f := range few {
		if !slices.ContainsFunc(whole, func(w step) bool { return w.name == f.name && w.file == f.file }) {
			t.Errorf("%s is put at %s, and not so with the others", f.name, f.file)
		}
		if c.has(few, []string{"runc", "cni/bridge"}) {
			t.Errorf("it is said to be there without %s", f.file)
		}
		if err := os.MkdirAll(filepath.Dir(f.file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if !c.has(few, []string{"runc", "cni/bridge"}) || c.has(whole, nil) {
		t.Error("not the two programs that are there, or more than these, are said to be there")
	}
}

func TestMissingPackages(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	got := missingPackages([]need{{"a", yes}, {"b", no}, {"c", no}})
	if !reflect.DeepEqual(got, []string{"b", "c"}) {
		t.Errorf("got %v", got)
	}
}

func TestStep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bin", "x")
	calls := 0
	fail := errors.New("no")
	s := step{"x", file, func(_ context.Context, tmp string) error {
		calls++
		if err := os.WriteFile(tmp, []byte("x"), 0o644); err != nil || calls > 1 {
			return err
		}
		return fail
	}}
	var out bytes.Buffer
	if err := s.run(t.Context(), &out, "[1/1]"); !errors.Is(err, fail) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a failed step left its file")
	}
	for range 2 { // the second time there is nothing to do
		if err := s.run(t.Context(), &out, "[1/1]"); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 2 || !strings.Contains(out.String(), "[1/1] x … there already") {
		t.Errorf("%d calls, said %q", calls, out.String())
	}
}
