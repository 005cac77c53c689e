package main

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestScenarios: each file is valid, says on top in a few words what it is about,
// and has a Pod that can tell what it holds.
func TestScenarios(t *testing.T) {
	scenarios, err := read("scenarios")
	if err != nil {
		t.Fatal(err)
	}
	if len(scenarios) == 0 {
		t.Fatal("no scenarios")
	}
	for i, s := range scenarios {
		if number(s.file) != i+1 {
			t.Errorf("%s comes as number %d", s.file, i+1)
		}
		t.Run(s.name(), func(t *testing.T) {
			asked := comment(s.manifest)
			if n := len(asked); n < 1 || n > 4 {
				t.Errorf("%d lines of comment on top, want 1 to 4", n)
			}
			description, err := machines.Description(s.needs())
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range append(asked, comment(string(description))...) {
				if len(line) > width-10 {
					t.Errorf("too long to show: %s", line)
				}
			}
			objects, err := harness.Objects(s.manifest)
			if err != nil {
				t.Fatal(err)
			}
			pods := 0
			for _, o := range objects {
				var containers []corev1.Container
				switch o := o.(type) {
				case *corev1.Pod:
					containers = o.Spec.Containers
				case *appsv1.Deployment:
					containers = o.Spec.Template.Spec.Containers
				default:
					continue
				}
				pods++
				if len(containers) != 1 || !slices.Equal(containers[0].Args, []string{"-words"}) && !harness.UsesCUDA(containers[0]) {
					t.Errorf("a Pod does not tell what it holds: %+v", containers)
				}
			}
			if pods == 0 {
				t.Error("no Pod")
			}
		})
	}
}

func TestNeeds(t *testing.T) {
	for manifest, want := range map[string]string{
		"# A Pod.\nkind: Pod\n":                     machine,
		"# A Pod.\n# machine: mixed\nkind: Pod\n":   "mixed",
		"# A machine: mixed\nkind: Pod\n":           machine,
		"kind: Pod\nmetadata: {name: machine: x}\n": machine,
	} {
		s := scenario{manifest: manifest}
		if got := s.needs(); got != want {
			t.Errorf("%q needs %s, want %s", manifest, got, want)
		}
		if slices.ContainsFunc(comment(manifest), func(line string) bool { return strings.HasPrefix(line, machineMark) }) {
			t.Errorf("%q: its comment is %q", manifest, comment(manifest))
		}
	}
}

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string
	}{
		{"", []string{""}},
		{"short", []string{"short"}},
		{"just as long as it may", []string{"just as long as it may"}},
		{"a line that is too long for one", []string{"a line that is too", "  long for one"}},
		{"Pod a has gpu-1 (H100, 80 GiB)", []string{"Pod a has gpu-1", "  (H100, 80 GiB)"}},
		{"a (parenthesis that opens early)", []string{"a (parenthesis that", "  opens early)"}},
		{"one-word-that-is-longer-than-the-width", []string{"one-word-that-is-longer-than-the-width"}},
		{"a one-word-that-is-longer-than-the-width", []string{"a", "  one-word-that-is-longer-than-the-width"}},
	} {
		if got := wrap(test.line, 22); !slices.Equal(got, test.want) {
			t.Errorf("wrap(%q) gives %q, want %q", test.line, got, test.want)
		}
	}
}
