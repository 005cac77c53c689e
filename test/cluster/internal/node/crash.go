package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/hostdirs"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/mount"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/network"
)

// crash does what pulling the plug does: every process of the node ends at once,
// what they had mounted and what lived in memory is gone, the disk stays. When the
// node is up again it has another boot id.
func (n *Node) crash() error {
	group := n.cluster.NodeGroup(n.name)
	if err := n.tree.Kill(group, 10*time.Second); err != nil {
		return err
	}
	for _, exited := range []<-chan struct{}{n.containerd.Exited(), n.kubelet.Exited()} {
		if exited != nil {
			<-exited
		}
	}
	err := errors.Join(
		mount.UnmountNewer(n.base),
		n.tree.RemoveChildren(group, "system", 5*time.Second),
		network.Unplug(),
	)
	for _, d := range hostdirs.Private {
		if d.Volatile {
			err = errors.Join(err, empty(d.Path))
		}
	}
	if err != nil {
		return fmt.Errorf("%s is down, but not clean: %w", n.name, err)
	}
	return n.newBootID()
}

// empty removes what is in a directory.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
