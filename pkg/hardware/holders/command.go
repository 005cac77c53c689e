package holders

import (
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	// commandPatience is for the command line, which a process that hangs in the
	// driver can keep from being read.
	commandPatience = time.Second
	// maxCommand is in bytes.
	maxCommand = 120
)

// command names what runs in a process, as far as that can be read.
func (f *Finder) command(pid int) string {
	comm, _ := os.ReadFile(f.path(strconv.Itoa(pid), "comm")) // gone meanwhile: an empty name
	name := strings.TrimSpace(string(comm))
	if started := started(f.line(pid)); started != "" {
		name += " (" + started + ")"
	}
	return printable(name)
}

// line is the command line, its words ended by NULs; empty where it is not to be had.
func (f *Finder) line(pid int) string {
	var line []byte
	err := f.calls.Do("process "+strconv.Itoa(pid), func() (err error) {
		line, err = os.ReadFile(f.path(strconv.Itoa(pid), "cmdline"))
		return err
	})
	if err != nil {
		return ""
	}
	return string(line)
}

// started is a command line up to the first option: it goes into events that others
// read, and options may have secrets.
func started(line string) string {
	var words []string
	for word := range strings.SplitSeq(line, "\x00") {
		if word == "" || strings.HasPrefix(word, "-") {
			break
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// printable keeps a process from writing more than its name into a message.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	if len(s) <= maxCommand {
		return s
	}
	return strings.ToValidUTF8(s[:maxCommand-len("…")], "") + "…"
}
