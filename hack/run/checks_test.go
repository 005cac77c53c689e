package main

import (
	"strings"
	"testing"
)

func TestLocalPath(t *testing.T) {
	local := localPath("/src/dovetail", "/var/me/")
	for line, want := range map[string]bool{
		"see ~home~/anna/x":          true,
		`dir := "~Users~/anna"`:      true,
		"/src/dovetail/pkg/machine":  true,
		"cache in /var/me/.cache":    true,
		"/var/meadow":                false,
		"./src/dovetail/x":           false,
		"$HOME/.cache":               false,
		"/var/lib~home~/anna":        false,
		"/src/dovetail-dra/dovetail": false,
	} {
		// The slashes are put in here, so that this file passes the check itself.
		line = strings.NewReplacer("~home~", "/home", "~Users~", "/Users").Replace(line)
		if got := local.MatchString(line); got != want {
			t.Errorf("%q: found %v, want %v", line, got, want)
		}
	}
}
