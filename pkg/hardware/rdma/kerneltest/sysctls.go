package kerneltest

import (
	"maps"
	"path"

	"golang.org/x/sys/unix"
)

// ofNew are a new link's.
var ofNew = map[string]int{"ipv4/conf/send_redirects": 1, "ipv6/conf/accept_ra": 1}

func (n *namespace) Sysctls(index int) (map[string]int, error) {
	var set map[string]int
	err := n.on("Sysctls", index, func(l *link) error {
		set = maps.Clone(ofNew)
		maps.Copy(set, l.sysctls)
		maps.DeleteFunc(set, func(_ string, value int) bool { return value == 0 })
		return nil
	})
	return set, err
}

func (n *namespace) SetSysctl(link, name string, value int) error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	l := n.space.byName(link)
	if folder := path.Dir(name); l == nil || folder != "ipv4/conf" && folder != "ipv6/conf" {
		return unix.ENOENT
	}
	if err := n.failing("SetSysctl"); err != nil {
		return err
	}
	if l.sysctls == nil {
		l.sysctls = map[string]int{}
	}
	l.sysctls[name] = value
	return nil
}
