package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"
)

// report prints what happened and says whether all was well. Its last line is
// for people and machines: it counts every test, and a failed step that is no
// test as one failure.
func report(w io.Writer, results []result, took time.Duration) bool {
	var sum counts
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nSTEP\tRESULT\tTIME\tTESTS")
	for _, r := range results {
		title := r.step.group + ": " + r.step.name
		word, tests := "ok", ""
		switch {
		case r.skipped != "":
			word = "skipped"
			sum.skips = append(sum.skips, skip{title, r.skipped})
		case r.err != nil:
			word = "FAILED"
			sum.failures = append(sum.failures, title)
		case r.counts.failed() > 0:
			word = "FAILED"
		}
		if r.step.tests && r.skipped == "" {
			tests = fmt.Sprintf("%d passed, %d failed, %d skipped", r.counts.passed, r.counts.failed(), len(r.counts.skips))
		}
		fmt.Fprintf(table, "%s\t%s\t%.1fs\t%s\n", title, word, r.took.Seconds(), tests)
		sum.add(r.counts)
	}
	fmt.Fprintf(table, "all\t\t%.1fs\t\n", took.Seconds())
	_ = table.Flush()

	if len(sum.skips) > 0 {
		fmt.Fprintln(w, "\nSkipped:")
		for _, s := range sum.skips {
			fmt.Fprintf(w, "  %s: %s\n", s.test, s.reason)
		}
	}
	if len(sum.failures) > 0 {
		fmt.Fprintln(w, "\nFailed:")
		for _, f := range sum.failures {
			fmt.Fprintf(w, "  %s\n", f)
		}
	}
	fmt.Fprintf(w, "\n%d passed, %d failed, %d skipped\n", sum.passed, sum.failed(), len(sum.skips))
	return sum.failed() == 0
}

var notWord = regexp.MustCompile(`[^a-z0-9]+`)

// slug is a title as a file name.
func slug(title string) string {
	return strings.Trim(notWord.ReplaceAllString(strings.ToLower(title), "-"), "-")
}
