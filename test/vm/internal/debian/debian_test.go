package debian

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRelease(t *testing.T) {
	for text, want := range map[string]string{
		"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nVERSION_CODENAME=bookworm\n": "bookworm",
		"PRETTY_NAME=\"Ubuntu 24.04\"\nID=ubuntu\nVERSION_CODENAME=noble\n":                      "",
		"PRETTY_NAME=\"Debian GNU/Linux forky/sid\"\nID=debian\n":                                "",
	} {
		file := filepath.Join(t.TempDir(), "os-release")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := release(file)
		if got != want || errors.Is(err, ErrUnavailable) != (want == "") {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	if _, err := release(filepath.Join(t.TempDir(), "none")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without the file: %v", err)
	}
}

func TestSources(t *testing.T) {
	got := sourcesFor("bookworm", strings.Join([]string{
		"http://mirror/debian/ bookworm main",
		"http://mirror/debian/ bookworm main", // once more, for another architecture
		"http://mirror/debian/ bookworm contrib",
		"http://mirror/debian/ bookworm-updates main",
		"http://mirror/security/ bookworm-security main",
		"http://else/where/ nodistro main",
	}, "\n"))
	const key = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
	want := key + "http://mirror/debian/ bookworm main\n" +
		key + "http://mirror/debian/ bookworm-backports main\n" +
		key + "http://mirror/security/ bookworm-security main\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := sourcesFor("bookworm", "http://else/where/ nodistro main"); got != "" {
		t.Errorf("no mirror of Debian's, and yet %q", got)
	}
}

func TestInstalled(t *testing.T) {
	got := installed(strings.Join([]string{
		"NOTE: This is only a simulation!",
		"Inst libaio1 (0.3.113-4 Debian:12.11/stable [amd64])",
		"Inst seabios [1.14-1] (1.16.3-2~bpo12+1 Debian Backports:stable-backports [all]) []",
		"Conf libaio1 (0.3.113-4 Debian:12.11/stable [amd64])",
	}, "\n"))
	if want := []string{"libaio1=0.3.113-4", "seabios=1.16.3-2~bpo12+1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
