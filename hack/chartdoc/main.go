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

	"github.com/dovetail-dra/dovetail/hack/marked"
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
	after, err := marked.Replace(string(before), "values", table(rows))
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

func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| Value | Default | Meaning |\n|---|---|---|\n")
	for _, r := range rows {
		b.WriteString(marked.Row("`"+r.name+"`", "`"+r.value+"`", r.text))
	}
	return b.String()
}
