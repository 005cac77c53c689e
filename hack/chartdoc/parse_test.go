package main

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	rows, err := parse(`# About the file.

image:
  # Where it is,
  # without tag.
  repository: a/b
  # The tag.
  tag: ""

# Nodes.
nodeSelector:
  kubernetes.io/os: linux

# List.
list: [{a: b}]
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []row{
		{"image.repository", "a/b", "Where it is, without tag."},
		{"image.tag", `""`, "The tag."},
		{"nodeSelector", "{kubernetes.io/os: linux}", "Nodes."},
		{"list", "[{a: b}]", "List."},
	}
	if !slices.Equal(rows, want) {
		t.Errorf("got %+v\nwant %+v", rows, want)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a:\n  b: 1\n":           "line 2: a.b has no comment",
		"# A.\na:\n- operator\n": "line 3",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}
