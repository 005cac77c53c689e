// Package build makes the programs and images of a cluster, once.
package build

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/image"
	"github.com/dovetail-dra/dovetail/test/cluster/modules"
)

// Cache is where one set of programs and images lies. A set never changes; other
// inputs make another set.
type Cache struct{ Dir string }

// Bin is where the programs are, and in cni/ below it the CNI plugins.
func (c Cache) Bin() string { return filepath.Join(c.Dir, "bin") }

// Images is where the images are, as NAME.tar.
func (c Cache) Images() string { return filepath.Join(c.Dir, "images") }

func (c Cache) marker() string { return filepath.Join(c.Dir, "complete") }
func (c Cache) lock() string   { return c.Dir + ".lock" }
func (c Cache) source(module string) string {
	return filepath.Join(c.Dir, "src", module)
}

// Complete says whether everything is there. The marker is written last.
func (c Cache) Complete() bool {
	_, err := os.Stat(c.marker())
	return err == nil
}

// Open finds the cache that belongs to this launcher and the Go in PATH.
func Open() (Cache, error) {
	goVersion, err := goVersion()
	if err != nil {
		return Cache{}, err
	}
	base, err := cacheBase(os.Getenv, home())
	if err != nil {
		return Cache{}, err
	}
	key, err := Key(goVersion)
	return Cache{filepath.Join(base, "cluster-"+key)}, err
}

// cacheBase is where users want caches to be.
func cacheBase(env func(string) string, home string) (string, error) {
	if d := env("DOVETAIL_CACHE"); d != "" {
		return filepath.Abs(d)
	}
	if d := env("XDG_CACHE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "dovetail"), nil
	}
	if home == "" {
		return "", fmt.Errorf("no place for the cache: neither DOVETAIL_CACHE, XDG_CACHE_HOME nor HOME is set, and the user has no home; set DOVETAIL_CACHE")
	}
	return filepath.Join(home, ".cache", "dovetail"), nil
}

// home is the user's home, also where HOME is not set, as in some services.
func home() string {
	if h := os.Getenv("HOME"); h != "" {
		return h
	}
	if u, err := user.Current(); err == nil {
		return u.HomeDir
	}
	return ""
}

// Key condenses all that decides what is built.
func Key(goVersion string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, goVersion, runtime.GOARCH, commonFlags)
	for _, name := range modules.Names {
		m, err := modules.Get(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d %d\n%s%s", name, len(m.Mod), len(m.Sum), m.Mod, m.Sum)
	}
	programs, err := Programs()
	if err != nil {
		return "", err
	}
	for _, p := range programs {
		fmt.Fprintf(h, "%+v\n", p)
	}
	fmt.Fprintln(h, image.Fingerprint())
	return fmt.Sprintf("%x", h.Sum(nil))[:16], nil
}

func goVersion() (string, error) {
	// Outside of any module, so that no go.mod asks for another Go.
	cmd := exec.Command("go", "env", "GOVERSION")
	cmd.Dir, cmd.Env = "/", goEnv("0")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running go: %w; the cluster's programs are built with Go 1.26 or newer: install it and put it into PATH", err)
	}
	return strings.TrimSpace(string(out)), nil
}
