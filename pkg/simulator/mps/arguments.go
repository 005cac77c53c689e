package mps

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// arguments of a command of protocol 3: MODULE VERB, up to three positions, and
// --key=value, key=value or --flag.
type arguments struct {
	positions []string
	keys      map[string]string
	name      string // MODULE VERB
}

func parseArguments(words []string) (arguments, error) {
	if len(words) < 2 {
		return arguments{}, errors.New("Usage: MODULE VERB [ARGUMENTS]")
	}
	a := arguments{name: words[0] + " " + words[1], keys: map[string]string{}}
	for _, word := range words[2:] {
		key, value, ok := strings.Cut(word, "=")
		switch {
		case ok:
			a.keys[strings.TrimPrefix(key, "--")] = value
		case strings.HasPrefix(word, "--"):
			a.keys[key[2:]] = "true"
		default:
			a.positions = append(a.positions, word)
		}
	}
	return a, nil
}

// check says whether the command takes so many positions, and these keys.
func (a arguments) check(least, most int, keys ...string) error {
	if n := len(a.positions); n < least || n > most {
		return fmt.Errorf("%s: %d positional arguments: give %d to %d", a.name, n, least, most)
	}
	for key := range a.keys {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("%s: unknown option --%s", a.name, key)
		}
	}
	return nil
}

// list writes rows as --format wants them: a table, or "csv", and each without its
// header with "noheader".
func (a arguments) list(columns []string, rows [][]string) (string, error) {
	form, option, _ := strings.Cut(a.keys["format"], ",")
	if form != "" && form != "table" && form != "csv" || option != "" && option != "noheader" {
		return "", fmt.Errorf("%s: format %q: give table or csv, and perhaps ,noheader", a.name, a.keys["format"])
	}
	if option == "" {
		header := slices.Clone(columns)
		if form != "csv" {
			for i := range header {
				header[i] = strings.ToUpper(header[i])
			}
		}
		rows = append([][]string{header}, rows...)
	}
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if form == "csv" {
			fmt.Fprintln(&out, strings.Join(row, ","))
		} else {
			fmt.Fprintln(table, strings.Join(row, "\t"))
		}
	}
	err := table.Flush()
	return out.String(), err
}

// get is one field of a row.
func (a arguments) get(field string, columns, row []string) (string, error) {
	i := slices.Index(columns, field)
	if i < 0 {
		return "", fmt.Errorf("%s: unknown field %s: use one of %s", a.name, field, strings.Join(columns, ", "))
	}
	return row[i] + "\n", nil
}
