package kit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPart(t *testing.T) {
	for deb, want := range map[string]string{
		"linux-image-6.12.1+deb12-amd64_6.12.1-1_amd64.deb":  "kernel",
		"linux-headers-6.12.1+deb12-common_6.12.1-1_all.deb": "headers",
		"linux-kbuild-6.12.1+deb12_6.12.1-1_amd64.deb":       "headers",
		"qemu-system-x86_1%3a10.0.2+ds-2~bpo12+1_amd64.deb":  "qemu",
		"libaio1_0.3.113-4_amd64.deb":                        "qemu",
	} {
		if got := part(deb); got != want {
			t.Errorf("%s goes into %s, want %s", deb, got, want)
		}
	}
}

func TestRelocate(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "Makefile")
	for _, x := range []struct {
		before, after string
		fails         bool
	}{
		{"include /usr/src/linux-headers-6.12-common/Makefile\n", "include $(dir $(lastword $(MAKEFILE_LIST)))../linux-headers-6.12-common/Makefile\n", false},
		{"include common.mk\n", "include common.mk\n", true},
	} {
		if err := os.WriteFile(file, []byte(x.before), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := relocate(dir); (err != nil) != x.fails {
			t.Errorf("%q: %v", x.before, err)
		}
		if got, _ := os.ReadFile(file); string(got) != x.after {
			t.Errorf("%q became %q, want %q", x.before, got, x.after)
		}
	}
}

// TestUnfinished: only what build has finished counts as there.
func TestUnfinished(t *testing.T) {
	if _, err := there(t.TempDir()); err == nil {
		t.Error("an empty folder is no kit")
	}
	k := Kit{dir: "/kit", Version: "6.12-amd64"}
	if program, args, env := k.QEMU(); !strings.HasPrefix(program, "/kit/") || len(args) == 0 || len(env) == 0 {
		t.Errorf("QEMU is %q with %q and %q", program, args, env)
	}
}
