package ramdisk

import (
	"strings"

	"github.com/dovetail-dra/dovetail/hack/sharedlib"
)

// AddLinked puts a program in together with its loader and its libraries, which
// are those of this machine.
func (d *Disk) AddLinked(name, from string) error {
	libraries, err := sharedlib.Of(nil, from)
	if err != nil {
		return err
	}
	for _, at := range libraries {
		if err := d.AddProgram(strings.TrimPrefix(at, "/"), at); err != nil {
			return err
		}
	}
	return d.AddProgram(name, from)
}
