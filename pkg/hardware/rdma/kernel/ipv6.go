package kernel

import (
	"os"
	"path/filepath"
)

// EnableIPv6 implements Namespace. There is a sysctl for it and no message: which
// namespace's it is depends on the thread that opens it (proc_sys(5), net).
func (n *namespace) EnableIPv6(link string) error {
	file := filepath.Join(n.proc, "sys/net/ipv6/conf", link, "disable_ipv6")
	return n.inside(func() error { return os.WriteFile(file, []byte("0"), 0) })
}
