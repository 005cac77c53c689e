// Package marked replaces the part of a document that is generated: what stands between
// a line that has "<!-- NAME:begin" and one that has "<!-- NAME:end -->".
package marked

import (
	"fmt"
	"strings"
)

// Replace returns the document with other content, of whole lines, between the marks.
func Replace(document, name, content string) (string, error) {
	begin, end := "<!-- "+name+":begin", "<!-- "+name+":end -->"
	from := strings.Index(document, begin)
	to := strings.Index(document, end)
	if from < 0 || to < from {
		return "", fmt.Errorf("no marks %q … %q", begin, end)
	}
	from += strings.Index(document[from:], "\n") + 1
	return document[:from] + content + document[to:], nil
}

// Row of a table in Markdown.
func Row(cells ...string) string {
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}
