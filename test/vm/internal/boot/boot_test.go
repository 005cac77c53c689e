package boot

import (
	"strings"
	"testing"
)

func TestCopyLines(t *testing.T) {
	for _, x := range []struct {
		in, out string
		code    int
		ended   bool
		fails   bool
	}{
		{in: "a\nb\n" + Exit(1), out: "a\nb\n", code: 1, ended: true},
		{in: "a\n" + Exit(0), out: "a\n", ended: true},
		{in: "a\nhalf a li", out: "a\nhalf a li"},
		{in: "=== exit nonsense\n", fails: true},
	} {
		var out strings.Builder
		code, ended, err := copyLines(&out, strings.NewReader(x.in))
		if code != x.code || ended != x.ended || (err != nil) != x.fails || out.String() != x.out {
			t.Errorf("%q: code %d, ended %v, %v, and %q", x.in, code, ended, err, out.String())
		}
	}
}
