package main

import (
	"fmt"
	"strings"
)

// row is one value: its dotted name, its default, and the comment above it.
type row struct{ name, value, text string }

// parse reads the plain kind of YAML that values.yaml is: maps, each key on a
// line of its own, defaults on the key's line. It wants a comment above each
// value, and takes one above a map whose keys have none as the map's.
func parse(text string) ([]row, error) {
	type open struct {
		indent int
		key    string
	}
	var (
		rows    []row
		path    []open
		comment []string
		covered = -1 // the indent of a map that has a comment of its own
	)
	flatten := func() string { return strings.Join(comment, " ") }
	lines := strings.Split(text, "\n")
	for n, line := range lines {
		trimmed := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " "))
		switch {
		case trimmed == "":
			comment = nil
			continue
		case strings.HasPrefix(trimmed, "#"):
			comment = append(comment, strings.TrimSpace(strings.TrimPrefix(trimmed, "#")))
			continue
		}
		key, value, ok := strings.Cut(trimmed, ":")
		if !ok || strings.HasPrefix(trimmed, "-") {
			return nil, fmt.Errorf("line %d: %q is not of the form key: value; write lists in brackets, on one line", n+1, trimmed)
		}
		for len(path) > 0 && path[len(path)-1].indent >= indent {
			path = path[:len(path)-1]
		}
		if covered >= indent {
			covered = -1
		}
		path = append(path, open{indent, key})
		names := make([]string, len(path))
		for i, p := range path {
			names[i] = p.key
		}
		name := strings.Join(names, ".")
		value = strings.TrimSpace(value)
		switch {
		case value == "" && len(comment) > 0:
			covered = indent
			rows = append(rows, row{name, inline(lines[n+1:], indent), flatten()})
		case value == "":
		case covered >= 0 && len(comment) == 0:
		case len(comment) == 0:
			return nil, fmt.Errorf("line %d: %s has no comment above it that says what it is for", n+1, name)
		default:
			rows = append(rows, row{name, value, flatten()})
		}
		comment = nil
	}
	return rows, nil
}

// inline is the default of a map that is described as a whole.
func inline(lines []string, indent int) string {
	var pairs []string
	for _, line := range lines {
		if strings.TrimSpace(line) == "" || len(line)-len(strings.TrimLeft(line, " ")) <= indent {
			break
		}
		pairs = append(pairs, strings.TrimSpace(line))
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}
