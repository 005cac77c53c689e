package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// stream is what "go test -json" says of a package with a test that passes, one
// with two subtests of which one fails, one that is skipped, and of a package
// that does not build.
const stream = `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"run","Package":"p","Test":"TestB/one"}
{"Action":"run","Package":"p","Test":"TestB/two"}
{"Action":"pass","Package":"p","Test":"TestB/one"}
{"Action":"output","Package":"p","Test":"TestB/two","Output":"    b_test.go:9: wrong\n"}
{"Action":"fail","Package":"p","Test":"TestB/two"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"run","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:3: needs a cat\n"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"fail","Package":"p","Elapsed":0.3}
{"Action":"output","Package":"q","Output":"FAIL\tq [build failed]\n"}
{"Action":"fail","Package":"q"}
`

func TestReader(t *testing.T) {
	var out bytes.Buffer
	r := newReader(&out, false)
	if err := r.read(strings.NewReader(strings.TrimSpace(stream))); err != nil {
		t.Fatal(err)
	}
	if r.counts.passed != 2 {
		t.Errorf("%d passed, want 2: a test with subtests does not count beside them", r.counts.passed)
	}
	if want := []string{"p.TestB/two", "q (the package as a whole)"}; !slices.Equal(r.counts.failures, want) {
		t.Errorf("failures %q, want %q", r.counts.failures, want)
	}
	if want := []skip{{"p.TestC", "needs a cat"}}; !slices.Equal(r.counts.skips, want) {
		t.Errorf("skips %q, want %q", r.counts.skips, want)
	}
	for _, want := range []string{"b_test.go:9: wrong", "q [build failed]"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output has no %q:\n%s", want, &out)
		}
	}
}

func TestReport(t *testing.T) {
	var out bytes.Buffer
	ok := report(&out, []result{
		{step: step{group: "unit", name: "a", tests: true}, counts: counts{passed: 3, skips: []skip{{"p.T", "why"}}}},
		{step: step{group: "verify", name: "b"}, err: bytes.ErrTooLarge},
		{step: step{group: "e2e", name: "c"}, skipped: "test/e2e does not exist"},
	}, time.Second)
	if ok {
		t.Error("a failed step makes no failed run")
	}
	if !strings.HasSuffix(out.String(), "\n3 passed, 1 failed, 2 skipped\n") {
		t.Errorf("the last line does not count them all:\n%s", &out)
	}
	for _, want := range []string{"p.T: why", "e2e: c: test/e2e does not exist"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, &out)
		}
	}
}
