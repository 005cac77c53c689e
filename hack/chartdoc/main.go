// Command chartdoc writes the table of values in the chart's README from the
// comments in values.yaml. With -check it writes nothing, and fails if the table
// is not what it would write.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dovetail-dra/dovetail/hack/toolbox"
)

func main() {
	check := flag.Bool("check", false, "only say whether the table is up to date")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "chartdoc:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	root, err := toolbox.Root()
	if err != nil {
		return err
	}
	chart := filepath.Join(root, "deployments", "helm", "dovetail")
	values, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	rows, err := parse(string(values))
	if err != nil {
		return fmt.Errorf("values.yaml: %w", err)
	}
	readme := filepath.Join(chart, "README.md")
	before, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	after, err := replace(string(before), table(rows))
	if err != nil {
		return fmt.Errorf("README.md: %w", err)
	}
	if after == string(before) {
		return nil
	}
	if check {
		return errors.New("the chart's README does not have the values of values.yaml; make chart-docs writes them")
	}
	return os.WriteFile(readme, []byte(after), 0o644)
}

// replace puts the table between the two marks.
func replace(readme, table string) (string, error) {
	const begin, end = "<!-- values:begin", "<!-- values:end -->"
	from := strings.Index(readme, begin)
	to := strings.Index(readme, end)
	if from < 0 || to < from {
		return "", fmt.Errorf("no marks %q … %q", begin, end)
	}
	from += strings.Index(readme[from:], "\n") + 1
	return readme[:from] + table + readme[to:], nil
}

func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| Value | Default | Meaning |\n|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", r.name, r.value, strings.ReplaceAll(r.text, "|", `\|`))
	}
	return b.String()
}
