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
	// maxText of what a process says of itself is in bytes.
	maxText = 120
)

// holder names a process, as far as that can be read.
func (f *Finder) holder(pid int) Holder {
	name, _ := os.ReadFile(f.path(strconv.Itoa(pid), "comm")) // gone meanwhile: no name
	return Holder{PID: pid, Name: printable(strings.TrimSpace(string(name))), Command: printable(started(f.line(pid)))}
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
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText-len("…")], "") + "…"
}
