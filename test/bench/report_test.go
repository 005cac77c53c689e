package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Some figures are written among the others, which stay.
func TestUpdateDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "benchmarks.md")
	figures := func(title, figure string) table {
		made := table{title: title, made: "By hand.", columns: []string{"What", "Dovetail"}}
		made.add("a figure", figure)
		return made
	}
	read := func() string {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(writeDocument(path, "Machine: one.", []table{figures("Calls", "1 ms"), figures("Calls at once", "2 ms")}))
	must(updateDocument(path, "Machine: one.", []table{figures("Calls", "3 ms"), figures("More", "4 ms")}))
	got := read()
	must(writeDocument(path, "Machine: one.", []table{figures("Calls", "3 ms"), figures("Calls at once", "2 ms"), figures("More", "4 ms")}))
	if want := read(); got != want {
		t.Errorf("some were updated to\n%s\nwant\n%s", got, want)
	}
	err := updateDocument(path, "Machine: another.", []table{figures("Calls", "5 ms")})
	if err == nil || !strings.Contains(err.Error(), "another machine") || read() != got {
		t.Errorf("error %v", err)
	}
}
