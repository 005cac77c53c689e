package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// event is one line of "go test -json".
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// counts are the outcomes of tests. Only leaves count: a test with subtests is
// the sum of them, unless it fails though none of them did.
type counts struct {
	passed     int
	failures   []string
	skips      []skip
	noTestFile int
}

type skip struct{ test, reason string }

func (c counts) failed() int { return len(c.failures) }

func (c *counts) add(d counts) {
	c.passed += d.passed
	c.failures = append(c.failures, d.failures...)
	c.skips = append(c.skips, d.skips...)
	c.noTestFile += d.noTestFile
}

// reader follows the events and prints what people want to see: a line a
// package, and all that a failing test said.
type reader struct {
	counts  counts
	out     io.Writer
	each    bool
	said    map[string][]string // output by test, kept until the test ends
	parents map[string]bool     // tests that have subtests
	broken  map[string]bool     // tests and packages with a failure inside
	ran     map[string]int      // leaves run by package
}

func newReader(out io.Writer, each bool) *reader {
	return &reader{out: out, each: each, said: map[string][]string{}, parents: map[string]bool{}, broken: map[string]bool{}, ran: map[string]int{}}
}

func (r *reader) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				// The go command itself speaks plainly when it cannot begin.
				_, _ = io.WriteString(r.out, line)
			} else {
				r.take(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read go test's output: %w", err)
		}
	}
}

func (r *reader) take(e event) {
	id := e.Package + "\x00" + e.Test
	switch e.Action {
	case "build-output":
		_, _ = io.WriteString(r.out, e.Output)
	case "run":
		for at := strings.LastIndex(e.Test, "/"); at > 0; at = strings.LastIndex(e.Test[:at], "/") {
			r.parents[e.Package+"\x00"+e.Test[:at]] = true
		}
	case "output":
		r.said[id] = append(r.said[id], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.packageEnded(e)
		} else {
			r.testEnded(e, id)
		}
		delete(r.said, id)
	}
}

func (r *reader) testEnded(e event, id string) {
	name := short(e.Package) + "." + e.Test
	leaf := !r.parents[id]
	switch {
	case e.Action == "fail":
		if !r.broken[id] {
			r.counts.failures = append(r.counts.failures, name)
			r.ran[e.Package]++
		}
		r.breaks(e)
		for _, line := range r.said[id] {
			_, _ = io.WriteString(r.out, line)
		}
	case e.Action == "skip":
		r.counts.skips = append(r.counts.skips, skip{name, reason(r.said[id])})
	case leaf:
		r.counts.passed++
		r.ran[e.Package]++
	}
	if r.each && !strings.Contains(e.Test, "/") {
		fmt.Fprintf(r.out, "  %-4s  %s  %.1fs\n", e.Action, e.Test, e.Elapsed)
	}
}

// breaks marks all that the failed test lies in.
func (r *reader) breaks(e event) {
	r.broken[e.Package+"\x00"] = true
	for at := strings.LastIndex(e.Test, "/"); at > 0; at = strings.LastIndex(e.Test[:at], "/") {
		r.broken[e.Package+"\x00"+e.Test[:at]] = true
	}
}

func (r *reader) packageEnded(e event) {
	id := e.Package + "\x00"
	switch {
	case e.Action == "fail":
		if !r.broken[id] {
			// It did not build, panicked outside a test, or ran out of time: the
			// tests that were running say nothing more.
			r.counts.failures = append(r.counts.failures, short(e.Package)+" (the package as a whole)")
			for key, lines := range r.said {
				if strings.HasPrefix(key, id) {
					_, _ = io.WriteString(r.out, strings.Join(lines, ""))
				}
			}
		}
		fmt.Fprintf(r.out, "  FAIL  %s\n", short(e.Package))
	case e.Action == "skip" || r.ran[e.Package] == 0:
		r.counts.noTestFile++
	default:
		fmt.Fprintf(r.out, "  ok    %-32s %3d tests  %.1fs\n", short(e.Package), r.ran[e.Package], e.Elapsed)
	}
}

var said = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)`)

// reason is the last thing that a skipped test logged.
func reason(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		if m := said.FindStringSubmatch(lines[i]); m != nil {
			return strings.TrimSpace(m[1])
		}
	}
	return "no reason given"
}

func short(pkg string) string {
	return strings.TrimPrefix(pkg, "github.com/dovetail-dra/dovetail/")
}
