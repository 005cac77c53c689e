package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// document is where the figures are kept.
const document = "docs/benchmarks.md"

// heading is what is before a section's title.
const heading = "\n## "

// table is some figures with what is to be known of them.
type table struct {
	title string
	// made says how the figures were made, in Markdown.
	made    string
	columns []string
	rows    [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print is for terminals.
func (t *table) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s\n", t.title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.columns}, t.rows...) {
		fmt.Fprintln(w, "  "+strings.Join(row, "\t"))
	}
	_ = w.Flush()
}

func (t *table) markdown(out io.Writer) {
	fmt.Fprintf(out, heading+"%s\n\n%s\n\n", t.title, t.made)
	fmt.Fprintf(out, "| %s |\n|%s\n", strings.Join(t.columns, " | "), strings.Repeat("---|", len(t.columns)))
	for _, row := range t.rows {
		fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
	}
}

const preamble = `# Benchmarks

Made by ` + "`make bench BENCH=-update`" + `; do not edit. The agent is the binary that ships, the API
server a real one of Kubernetes 1.37.2, the caller speaks the kubelet's protocol over the agent's socket; only
what is below NVML is simulated, and answers in microseconds. So these figures are what the driver adds to the
hardware's own time.

"Floor" is the smallest driver that the kubelet plugin helper allows (` + "`test/bench/floor`" + `): it looks up the
claim and says yes. The two take turns call by call, so their ratio is worth more than either figure. "NVIDIA" is
what the NVIDIA DRA driver needed for the same on such a machine, but in another run.

`

const epilogue = `
## What is not reached, and why

- **Prepare at 1.1 × the floor.** The floor writes nothing. A prepare must have its record on the disk before it
  changes anything, which is one durable write: two waits for the disk, one for the record and one for its name.
  What is left beside those, as the second table shows, is the CDI specification, the device metadata that the
  helper writes, the look at the GPU and the locks: a dozen small things, each some hundredths of a millisecond.
  On a disk in memory a paced prepare takes about 1.2 × the floor.
- **8 at once at 1.2 × the floor.** The same work eight times on the cores of the machine above, where it takes
  turns with the API server, which answers the look-ups. More threads, one fsync of the folder for all eight, and
  leaving it out were tried and changed nothing that could be told from noise.
- **Release at 1.1 × the floor.** The floor's release is an empty call of a quarter of a millisecond. A release
  renames the record and the metadata's folder, removes two CDI specifications, takes two locks and logs a line;
  nothing of it waits for the disk.
- **50 MB after 1000 claims, and after a minute of idling.** Two thirds are the program's text. The agent's own heap
  stays below 12 MB (GODEBUG=gctrace=1), collected at a quarter above what lives; what else is anonymous is the
  runtime's and the simulated NVML's, which is Go, too, and in the same process.
`

// writeDocument writes all figures to a document.
func writeDocument(path, where string, tables []table) error {
	var out strings.Builder
	fmt.Fprint(&out, preamble, where, "\n")
	for _, t := range tables {
		t.markdown(&out)
	}
	fmt.Fprint(&out, epilogue)
	return os.WriteFile(path, []byte(out.String()), 0o644)
}

// updateDocument writes some figures to a document, of which all others stay: those of the
// same title are replaced, and new ones come last.
func updateDocument(path, where string, tables []table) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	present, _, _ := strings.Cut(string(content), epilogue[:strings.Index(epilogue, "\n\n")])
	sections := strings.Split(present, heading)
	for i := 1; i < len(sections); i++ {
		sections[i] = heading + sections[i]
	}
	if !strings.Contains(sections[0], where) {
		return fmt.Errorf("%s has figures of another machine than this one (%s): update all of them, without -only", path, where)
	}
	for _, t := range tables {
		var made strings.Builder
		t.markdown(&made)
		at := slices.IndexFunc(sections, func(s string) bool { return strings.HasPrefix(s, heading+t.title+"\n") })
		if at < 0 {
			sections = append(sections, made.String())
			continue
		}
		sections[at] = made.String()
	}
	return os.WriteFile(path, []byte(strings.Join(sections, "")+epilogue), 0o644)
}
