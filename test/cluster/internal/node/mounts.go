package node

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/hostdirs"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/mount"
)

const bootIDFile = "/proc/sys/kernel/random/boot_id"

// tunables are what kubelet sets, for the whole machine, unless it finds them set.
// Nodes find them set: the host keeps its own values.
var tunables = map[string]string{
	"/proc/sys/vm/overcommit_memory":      "1",
	"/proc/sys/vm/panic_on_oom":           "0",
	"/proc/sys/kernel/panic":              "10",
	"/proc/sys/kernel/panic_on_oops":      "1",
	"/proc/sys/kernel/keys/root_maxkeys":  "1000000",
	"/proc/sys/kernel/keys/root_maxbytes": "25000000",
}

// mounts gives the node its own version of what machines do not share.
func (n *Node) mounts() error {
	if err := mount.Isolate(); err != nil {
		return err
	}
	for _, d := range hostdirs.Private {
		own := n.cluster.NodePath(n.name, d.Path)
		if err := os.MkdirAll(own, 0o755); err != nil {
			return err
		}
		if err := mount.Bind(own, d.Path); err != nil {
			return err
		}
		if err := mount.Shared(d.Path); err != nil {
			return err
		}
	}
	if err := n.newBootID(); err != nil {
		return err
	}
	if err := mount.Bind(n.cluster.NodePath(n.name, bootIDFile), bootIDFile); err != nil {
		return err
	}
	files := map[string]string{"/etc/machine-id": strings.ReplaceAll(uuid(), "-", "")}
	for f, v := range tunables {
		files[f] = v
	}
	for f, v := range files {
		if _, err := os.Stat(f); err != nil {
			continue // this kernel or machine has none
		}
		if err := n.cover(f, v); err != nil {
			return err
		}
	}
	return nil
}

// cover lays a file of the node's own, with this text, over a file of the host.
func (n *Node) cover(file, text string) error {
	own := n.cluster.NodePath(n.name, file)
	if err := writeOwn(own, text); err != nil {
		return err
	}
	return mount.Bind(own, file)
}

// newBootID changes the boot id in place, so that it shows through the mount.
func (n *Node) newBootID() error {
	return writeOwn(n.cluster.NodePath(n.name, bootIDFile), uuid())
}

func writeOwn(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text+"\n"), 0o444)
}

// uuid returns a random (version 4) UUID.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
