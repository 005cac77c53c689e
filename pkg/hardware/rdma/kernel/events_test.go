package kernel

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
)

// message is one of netlink(7) with a body.
func message(kind uint16, body ...byte) []byte {
	m := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	m = binary.NativeEndian.AppendUint16(m, kind)
	m = append(m, make([]byte, 10)...)
	return append(m, body...)
}

func route(bits byte) []byte {
	body := make([]byte, unix.SizeofRtMsg)
	body[1] = bits
	return message(unix.RTM_NEWROUTE, body...)
}

func TestRouteEvents(t *testing.T) {
	address := make([]byte, unix.SizeofIfAddrmsg)
	binary.NativeEndian.PutUint32(address[4:], 7)
	tests := []struct {
		name     string
		datagram []byte
		want     []Event
	}{
		{"default route", route(0), []Event{{}}},
		{"other routes", bytes.Join([][]byte{route(8), route(128)}, nil), nil},
		{"address", message(unix.RTM_NEWADDR, address...), []Event{{Index: 7}}},
		{"rule", message(unix.RTM_NEWRULE, make([]byte, 12)...), []Event{{}}},
		{"DCB", message(78, 0, 20, 0, 0), []Event{{}}},
		{"half an interface", message(unix.RTM_NEWLINK, 0, 0, 0, 0), []Event{{}}},
		{"half an address", message(unix.RTM_NEWADDR, 0, 0, 0, 0), nil},
		{"nonsense", []byte{1, 2, 3}, nil},
	}
	for _, tt := range tests {
		if got := routeEvents(tt.datagram); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestUevents(t *testing.T) {
	for text, want := range map[string]int{
		"add@/devices/pci0000:00/0000:00:03.0\x00ACTION=add\x00SUBSYSTEM=pci\x00":                     1,
		"remove@/devices/pci0000:00/x/infiniband/mlx5_0\x00ACTION=remove\x00SUBSYSTEM=infiniband\x00": 1,
		"add@/devices/virtual/net/veth0\x00ACTION=add\x00SUBSYSTEM=net\x00":                           0,
		"add@/devices/x\x00ACTION=add\x00SUBSYSTEM=pci_bus\x00":                                       0,
		"libudev\x00\xfe\xed\xca\xfe":                                                                 0,
	} {
		if got := uevents([]byte(text)); len(got) != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
