package ramdisk

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestArchive reads an archive back by the format's own rules.
func TestArchive(t *testing.T) {
	d := New()
	d.Add("a/b/odd", 0o640, []byte("12345"))
	d.Add("empty", 0o755, nil)
	name := filepath.Join(t.TempDir(), "disk")
	if err := d.Write(name); err != nil {
		t.Fatal(err)
	}
	got := list(t, name)
	want := []string{
		"40755 0:0 a", "40755 0:0 a/b", "100640 0:0 a/b/odd 12345", "40755 0:0 dev", "20600 5:1 dev/console",
		"100755 0:0 empty", "40755 0:0 proc", "40755 0:0 run", "40755 0:0 sys", "40755 0:0 tmp",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func list(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	take := func(n int) []byte { part := data[:n]; data = data[n:]; return part }
	skipPadding := func(n int) { take((4 - n%4) % 4) }
	var found []string
	for {
		head := take(110)
		if !bytes.HasPrefix(head, []byte("070701")) {
			t.Fatalf("no header: %q", head)
		}
		var n [13]uint32
		for i := range n {
			if _, err := fmt.Sscanf(string(head[6+8*i:14+8*i]), "%08X", &n[i]); err != nil {
				t.Fatal(err)
			}
		}
		mode, size, major, minor, length := n[1], int(n[6]), n[9], n[10], int(n[11])
		entry := strings.TrimSuffix(string(take(length)), "\x00")
		skipPadding(110 + length)
		content := string(take(size))
		skipPadding(size)
		if entry == "TRAILER!!!" {
			return found
		}
		found = append(found, strings.TrimSuffix(fmt.Sprintf("%o %d:%d %s %s", mode, major, minor, entry, content), " "))
	}
}

// TestModules: what a module depends on is loaded before it, what the kernel has
// built in is not loaded, and nothing is loaded twice.
func TestModules(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("modules.builtin", []byte("kernel/lib/built-in.ko\n"))
	write("kernel/ib-core.ko", module(t, ""))
	write("kernel/uverbs.ko", module(t, "ib-core,built_in"))
	write("own/fake.ko", module(t, "uverbs,ib_core"))

	d := New()
	if err := d.AddModules(t.Context(), dir, []string{"uverbs count=0"}, filepath.Join(dir, "own/fake.ko")); err != nil {
		t.Fatal(err)
	}
	if got, want := string(d.files[ModuleOrder].data), "ib_core\nuverbs count=0\nfake\n"; got != want {
		t.Errorf("order %q, want %q", got, want)
	}
	for _, name := range []string{"ib_core", "uverbs", "fake"} {
		if _, ok := d.files[ModuleDir+"/"+name+".ko"]; !ok {
			t.Errorf("%s is not there", name)
		}
	}
	write("kernel/lonely.ko", module(t, "nowhere"))
	if err := New().AddModules(t.Context(), dir, []string{"lonely"}); err == nil || !strings.Contains(err.Error(), "no module nowhere, which lonely needs") {
		t.Errorf("a module that is missing: %v", err)
	}
}

// module makes an object file with what modules say of themselves.
func module(t *testing.T, depends string) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "m.o")
	cmd := exec.Command("gcc", "-x", "assembler", "-c", "-o", name, "-")
	cmd.Stdin = strings.NewReader(".section .modinfo,\"a\"\n.asciz \"license=GPL\"\n.asciz \"depends=" + depends + "\"\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestLinked(t *testing.T) {
	d := New()
	program, err := exec.LookPath("gcc")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.AddLinked("bin/gcc", program); err != nil {
		t.Fatal(err)
	}
	var libc, loader bool
	for name, f := range d.files {
		libc = libc || strings.HasSuffix(name, "/libc.so.6") && len(f.data) > 0
		loader = loader || strings.HasPrefix(name, "lib64/ld-linux") && len(f.data) > 0
	}
	if !libc || !loader {
		t.Errorf("libc is there: %v, the loader: %v", libc, loader)
	}
}
