package dcb

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// attribute of a message (netlink(7)).
type attribute struct {
	kind  uint16 // without its flags
	value []byte
}

// kindOf takes flags off an attribute's kind (linux/netlink.h, NLA_TYPE_MASK).
const kindOf = 0x3fff

// attributes takes a message's, or an attribute's, content apart. The last may lack its
// padding.
func attributes(data []byte) ([]attribute, error) {
	var all []attribute
	for len(data) >= unix.NLA_HDRLEN {
		length := int(binary.NativeEndian.Uint16(data))
		if length < unix.NLA_HDRLEN || length > len(data) {
			return nil, fmt.Errorf("attribute of %d bytes in %d: %w", length, len(data), unix.EBADMSG)
		}
		all = append(all, attribute{kind: binary.NativeEndian.Uint16(data[2:]) & kindOf, value: data[unix.NLA_HDRLEN:length]})
		aligned := (length + unix.NLA_ALIGNTO - 1) / unix.NLA_ALIGNTO * unix.NLA_ALIGNTO
		data = data[min(aligned, len(data)):]
	}
	return all, nil
}
