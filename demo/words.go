package main

import (
	"fmt"
	"io"
	"strings"
)

// width of the output.
const width = 100

// paragraph prints lines under a label; lines that are too long go on below.
func paragraph(label string, lines ...string) {
	for _, line := range lines {
		for _, part := range wrap(line, width-10) {
			fmt.Printf("  %-7s %s\n", label, part)
			label = ""
		}
	}
}

// wrap breaks a line at spaces, and rather than in parentheses before them.
func wrap(line string, width int) []string {
	var parts []string
	for len(line) > width {
		at := strings.LastIndexByte(line[:width+1], ' ')
		if open := strings.LastIndex(line[:width+1], " ("); open > width/2 {
			at = open
		}
		if strings.TrimSpace(line[:max(at, 0)]) == "" {
			break
		}
		parts = append(parts, line[:at])
		line = "  " + line[at+1:]
	}
	return append(parts, line)
}

// dots lead from a title to what stands at the right edge.
func dots(title, right string) string {
	return strings.Repeat("·", max(3, width-len(title)-len(right)-2)) + " " + right
}

// comment is the text of the comment on top of a YAML file, but for what it says to
// this program.
func comment(file string) []string {
	var lines []string
	for line := range strings.Lines(file) {
		text, ok := strings.CutPrefix(line, "# ")
		if !ok {
			break
		}
		if !strings.HasPrefix(text, machineMark) {
			lines = append(lines, strings.TrimSpace(text))
		}
	}
	return lines
}

// warnings are the API server's, about what was created.
type warnings struct{}

func (warnings) HandleWarningHeader(_ int, _, text string) { paragraph("warned", text) }

// indented is for what others print: it stands below the headline.
type indented struct{ to io.Writer }

func (w indented) Write(b []byte) (int, error) {
	text := strings.TrimRight(string(b), "\n")
	if before, _, ok := strings.Cut(text, "\nuse it:"); ok {
		text = strings.TrimRight(before, "\n")
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) != "" {
			if _, err := fmt.Fprintln(w.to, "  "+line); err != nil {
				return 0, err
			}
		}
	}
	return len(b), nil
}
